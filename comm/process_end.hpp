// How another process has ended, as far as the system tells somebody who is not its parent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sidestream::comm {

struct ProcessEnd {
  enum class How { kUnknown, kExited, kKilled };
  How how = How::kUnknown;
  int number = 0;  // exit code or signal
};

// Of a pidfd that was opened while the process ran. Linux tells it from 6.15 on, once the parent
// has taken the end; before, and on older ones, it is not known.
ProcessEnd end_of_process(int pidfd) noexcept;

// For messages: "killed by SIGKILL: ...", "it exited by itself with code 17". memory_kills: how
// many processes of the host the kernel has ended meanwhile for want of memory; empty: not known.
std::string text_of(const ProcessEnd& end, std::optional<std::int64_t> memory_kills);

}  // namespace sidestream::comm
