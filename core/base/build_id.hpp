// Which build of this program runs.
#pragma once

#include <string>

namespace sidestream::core {

// The linker's build id of the running program, in hexadecimal digits: another build has another
// one, a copy the same. Empty where the linker left none.
std::string build_id();

// The same; size and time of the program's file where there is no build id.
std::string program_identity();

}  // namespace sidestream::core
