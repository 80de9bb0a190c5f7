// What goes on, but not as people think: one line on the standard error.
#pragma once

#include <string_view>

namespace sidestream::core {

// "sidestream: warning: TEXT", at once and whole, so that lines of ranks do not mix.
void print_warning(std::string_view text) noexcept;

}  // namespace sidestream::core
