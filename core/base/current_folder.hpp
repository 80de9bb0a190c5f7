// The folder that a program was started in.
#pragma once

namespace sidestream::core {

// Ends the process with exit code 2 and a line that says so where that folder has no name any more,
// as after `rm -r` in another terminal. Takes nothing that a library's initialisation makes.
void require_current_folder() noexcept;

}  // namespace sidestream::core
