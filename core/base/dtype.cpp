#include "core/base/dtype.hpp"

#include "core/base/error.hpp"

namespace sidestream::core {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kBFloat16:
    case DType::kFloat16:
    case DType::kUInt16:
      return 2;
    case DType::kUInt8:
      return 1;
  }
  throw Error("size_of: unknown element type " + std::to_string(static_cast<int>(dtype)));
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
    case DType::kFloat32:
      return "float32";
    case DType::kInt32:
      return "int32";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat16:
      return "float16";
    case DType::kUInt16:
      return "uint16";
    case DType::kUInt8:
      return "uint8";
  }
  throw Error("name_of: unknown element type " + std::to_string(static_cast<int>(dtype)));
}

}  // namespace sidestream::core
