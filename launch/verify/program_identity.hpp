// Which build of this program runs.
#pragma once

#include <string>

namespace sidestream::launch {

// The linker's build id in hexadecimal digits; size and time of the file where it has none. Another
// build has another one.
std::string program_identity();

}  // namespace sidestream::launch
