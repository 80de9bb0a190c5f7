// What the other end of a descriptor can show.
#pragma once

namespace sidestream::launch {

struct Terminal {
  int fd = 1;
  bool interactive = false;  // someone looks at it: lines may be redrawn
  bool color = false;        // interactive, and NO_COLOR is not set (https://no-color.org)
  bool utf8 = false;         // the locale's character set
  int width_columns = 0;     // 0: ask the terminal each time, it may be resized

  int current_width_columns() const;
};

Terminal detect_terminal(int fd);

}  // namespace sidestream::launch
