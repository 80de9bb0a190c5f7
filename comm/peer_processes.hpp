// The processes of the other ranks of this node: whether one of them is gone. A handle on the
// process itself, so that a number that is used again fools nobody.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "comm/process_end.hpp"
#include "core/base/file.hpp"

namespace sidestream::comm {

class PeerProcesses {
 public:
  // 0: left out. So is a process that cannot be watched (an old kernel).
  explicit PeerProcesses(const std::vector<int>& process_ids);

  // The place of the first process that has ended; nothing while all run, stopped or not.
  std::optional<int> first_gone() const noexcept;
  // Of a process that first_gone() has named.
  ProcessEnd end_of(int place) const noexcept {
    return end_of_process(handles_[static_cast<std::size_t>(place)].get());
  }

 private:
  std::vector<core::UniqueFd> handles_;
};

}  // namespace sidestream::comm
