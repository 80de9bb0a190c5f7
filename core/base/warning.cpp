#include "core/base/warning.hpp"

#include <cstdio>

namespace sidestream::core {

void print_warning(std::string_view text) noexcept {
  std::fprintf(stderr, "sidestream: warning: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace sidestream::core
