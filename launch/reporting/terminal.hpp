// What the other end of a descriptor can show.
#pragma once

#include <cstddef>
#include <string>

namespace sidestream::launch {

struct Terminal {
  int fd = 1;
  bool interactive = false;  // someone looks at it: lines may be redrawn
  bool color = false;        // interactive, and NO_COLOR is not set (https://no-color.org)
  bool utf8 = false;         // the locale's character set
  int width_columns = 0;     // 0: ask the terminal each time, it may be resized

  int current_width_columns() const;
  // Of reports: as wide as the terminal, 100 columns at most, and where nobody looks.
  std::size_t text_width_columns() const;
  // A line of ASCII in place of the one before, cut so that it stays one line.
  std::string redrawn(const std::string& line) const;
};

Terminal detect_terminal(int fd);

}  // namespace sidestream::launch
