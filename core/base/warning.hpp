// What people should know while a program goes on: one line on the standard error, at once and
// whole, so that lines of ranks do not mix. Where nobody reads there (Ctrl-S, a pager at its first
// page) lines are left out: a rank that waited for a reader would be taken for one that hangs.
// Thread-safe.
#pragma once

#include <string_view>

namespace sidestream::core {

// "sidestream: TEXT".
void print_note(std::string_view text) noexcept;

// "sidestream: warning: TEXT": it goes on, but not as people think.
void print_warning(std::string_view text) noexcept;

}  // namespace sidestream::core
