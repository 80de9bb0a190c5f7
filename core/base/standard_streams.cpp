#include "core/base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace sidestream::core {

void open_closed_streams() noexcept {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free, and those below are open. Handed on to programs that this one
    // starts, as the streams are.
    static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

}  // namespace sidestream::core
