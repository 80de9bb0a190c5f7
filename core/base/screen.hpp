// Where people look on: a terminal, a pipe to another program, a file.
//
// Whoever reads there may have stopped: Ctrl-S, a pager at its first page, a pipe that nobody
// empties. A text waits a second for them; after that what they do not take at once is left out,
// until they read again.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "core/base/file.hpp"

namespace sidestream::core {

class Screen {
 public:
  explicit Screen(int fd);  // which outlives it

  // Whole or not at all: of a text that was taken in part the rest comes first. A screen that is
  // gone (a closed terminal) takes nothing any more, one on a full disk once there is room.
  void write(std::string text) noexcept;
  bool is_gone() const noexcept { return is_gone_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  bool push(TimePoint deadline) noexcept;
  ssize_t write_some() const noexcept;

  int fd_;
  UniqueFd own_;  // the same terminal or pipe, where a write does not wait
  bool is_socket_ = false;
  bool is_terminal_ = false;
  bool is_pipe_ = false;
  std::string rest_;  // of a text that was taken in part
  bool is_gone_ = false;
  bool is_stuck_ = false;  // was waited for
};

}  // namespace sidestream::core
