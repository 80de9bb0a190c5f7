// What a command has printed has to have arrived before it says that it is done.
#pragma once

namespace sidestream::core {

// The exit code of a command that has printed its result: 1, with a message that begins with the
// program's name, when standard output could not take it (a full disk, say). A reader that has
// seen enough (`head`) is no failure.
int with_output_written(const char* program, int exit_code);

}  // namespace sidestream::core
