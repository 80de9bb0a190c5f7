// Descriptors 0 to 2 are the standard streams, whoever started the process.
#pragma once

namespace sidestream::core {

// Opens /dev/null on each of standard input, output and error that the process was started without
// (`>&-`). Call it before anything opens a file: the next one would get that number, and what is
// printed would be written into it.
void open_closed_streams() noexcept;

}  // namespace sidestream::core
