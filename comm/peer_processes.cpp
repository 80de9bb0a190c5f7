#include "comm/peer_processes.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sidestream::comm {

PeerProcesses::PeerProcesses(const std::vector<int>& process_ids) {
  for (const int process : process_ids) {
    const long handle = process > 0 ? ::syscall(SYS_pidfd_open, process, 0) : -1;
    handles_.emplace_back(static_cast<int>(handle));
  }
}

std::optional<int> PeerProcesses::first_gone() const noexcept {
  for (std::size_t place = 0; place < handles_.size(); ++place) {
    if (!handles_[place]) continue;
    pollfd question{.fd = handles_[place].get(), .events = POLLIN, .revents = 0};
    if (::poll(&question, 1, 0) == 1 && (question.revents & POLLIN) != 0)
      return static_cast<int>(place);
  }
  return std::nullopt;
}

}  // namespace sidestream::comm
