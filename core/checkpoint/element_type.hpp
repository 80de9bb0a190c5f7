// Element types of the safetensors format: its names, their sizes, and their counterparts in the
// program.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/dtype.hpp"

namespace sidestream::checkpoint {

// Every type that the format names. Values are positions in a table and stored nowhere.
enum class ElementType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kC64,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF6E2M3,
  kF6E3M2,
  kF4,
};

// "F32", "BF16", ... Throws Error for a value outside the enumeration.
std::string_view name_of(ElementType type);

// Of one element; 4 and 6 for the types below a byte.
unsigned bits_of(ElementType type);

// Empty for a name that the format does not know.
std::optional<ElementType> parse_element_type(std::string_view name);

// Empty for types that the program does not compute with.
std::optional<core::DType> to_dtype(ElementType type);
ElementType to_element_type(core::DType dtype);

}  // namespace sidestream::checkpoint
