// Whether something that has to give a sign of life is overdue.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "comm/deadline.hpp"

namespace sidestream::launch {

// Looked at now and then by one thread. The clock starts with the first look, and again with each
// sign of life.
class Overdue {
 public:
  // `count` of signs so far. True once nothing has changed for `limit`, while one is expected.
  bool look(std::uint64_t count, bool is_expected, std::chrono::milliseconds limit) {
    if (!deadline_ || count != seen_ || !is_expected) {
      seen_ = count;
      deadline_.emplace(limit);
      return false;
    }
    deadline_->tick();
    return deadline_->is_over();
  }

 private:
  std::uint64_t seen_ = 0;
  std::optional<comm::Deadline> deadline_;
};

}  // namespace sidestream::launch
