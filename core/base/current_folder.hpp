// The folder that a program was started in.
#pragma once

namespace sidestream::core {

// Ends the process with exit code 2 and a line that says so where that folder has no name any more,
// as after `rm -r` in another terminal. Only system calls: it may run before shared libraries are
// initialised.
void require_current_folder() noexcept;

}  // namespace sidestream::core
