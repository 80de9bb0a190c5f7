// What a command has printed has to have arrived before it says that it is done; what it remarks
// beside that need not.
#pragma once

#include <string_view>

namespace sidestream::core {

// The exit code of a command that has printed its result: 1, with a message that begins with the
// program's name, when standard output could not take it (a full disk, say). A reader that has
// seen enough (`head`) is no failure.
int with_output_written(const char* program, int exit_code);

// On standard error, with '?' for control characters but line breaks and tabs; waits for who reads
// there, so that no rank says anything by it that others wait for (warning.hpp). One that is full
// or gone takes nothing from what the command has done, nor from its exit code.
void print_remark(std::string_view text) noexcept;

}  // namespace sidestream::core
