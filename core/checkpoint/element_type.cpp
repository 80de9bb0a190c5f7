#include "core/checkpoint/element_type.hpp"

#include <array>
#include <string>

#include "core/base/error.hpp"

namespace sidestream::checkpoint {
namespace {

using core::DType;

struct Row {
  ElementType type;
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;
};

// clang-format off
constexpr std::array<Row, 20> kRows{{
    {ElementType::kF64, "F64", 64, DType::kFloat64},
    {ElementType::kF32, "F32", 32, DType::kFloat32},
    {ElementType::kF16, "F16", 16, DType::kFloat16},
    {ElementType::kBF16, "BF16", 16, DType::kBFloat16},
    {ElementType::kI64, "I64", 64, DType::kInt64},
    {ElementType::kI32, "I32", 32, DType::kInt32},
    {ElementType::kI16, "I16", 16, {}},
    {ElementType::kI8, "I8", 8, {}},
    {ElementType::kU64, "U64", 64, {}},
    {ElementType::kU32, "U32", 32, {}},
    {ElementType::kU16, "U16", 16, DType::kUInt16},
    {ElementType::kU8, "U8", 8, DType::kUInt8},
    {ElementType::kBool, "BOOL", 8, {}},
    {ElementType::kC64, "C64", 64, {}},
    {ElementType::kF8E4M3, "F8_E4M3", 8, {}},
    {ElementType::kF8E5M2, "F8_E5M2", 8, {}},
    {ElementType::kF8E8M0, "F8_E8M0", 8, {}},
    {ElementType::kF6E2M3, "F6_E2M3", 6, {}},
    {ElementType::kF6E3M2, "F6_E3M2", 6, {}},
    {ElementType::kF4, "F4", 4, {}},
}};
// clang-format on

const Row& row_of(ElementType type) {
  for (const Row& row : kRows) {
    if (row.type == type) return row;
  }
  throw core::Error("unknown safetensors element type " + std::to_string(static_cast<int>(type)));
}

}  // namespace

std::string_view name_of(ElementType type) { return row_of(type).name; }

unsigned bits_of(ElementType type) { return row_of(type).bits; }

std::optional<ElementType> parse_element_type(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<DType> to_dtype(ElementType type) { return row_of(type).dtype; }

ElementType to_element_type(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.type;
  }
  throw core::Error("safetensors has no type for element type " +
                    std::to_string(static_cast<int>(dtype)));
}

}  // namespace sidestream::checkpoint
