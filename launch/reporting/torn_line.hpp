// Files of lines that several calls append to: one that was killed, or met a full disk, may have
// left a line without its end.
#pragma once

namespace sidestream::launch {

// Whether the next line can follow as it is; true for an empty file. `file` can be read.
bool ends_with_a_line(int file);

}  // namespace sidestream::launch
