// What a process says when a file that it has mapped is no longer there: somebody has cut it short,
// or its disk cannot be read. Without this it would end by SIGBUS, without a word.
#pragma once

#include <string_view>

namespace sidestream::core {

// From now on such an access ends the process with the exit code of data (3), and one message that
// begins with `who` and names file and byte. Any other SIGBUS does what it would have done. `who`:
// at most 100 bytes are used.
void explain_bus_errors(std::string_view who) noexcept;

}  // namespace sidestream::core
