#include "core/base/error.hpp"

namespace sidestream::core {

std::string FileFault::text() const {
  std::string where = file;
  if (offset_bytes) where += ", byte " + std::to_string(*offset_bytes);
  return where + ": expected " + expected + ", found " + found;
}

}  // namespace sidestream::core
