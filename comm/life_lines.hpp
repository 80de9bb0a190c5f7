// Connections on which nothing is said. The kernel closes one as soon as the process at its other
// end is gone, whatever became of it, and leaves it open while that process is only stopped or
// slow: for ranks whose process this one cannot see, on another node or without a notice board.
//
// Over IPv4 and IPv6, whichever gets through first. One rank listens while the job is set up; each
// of the others calls it once. A rank that cannot be reached has no line: its end is noticed by the
// deadline, as that of a cable.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/network_interfaces.hpp"
#include "core/base/file.hpp"

namespace sidestream::comm {

// Where the listener can be called, and how it knows its own job: plain bytes, for a broadcast.
struct LifeLineAddress {
  static constexpr std::size_t kMostAddresses = 32;
  std::array<HostAddress, kMostAddresses> hosts{};  // all zero: none
  std::uint16_t port = 0;                           // in network order; 0: nobody listens
  std::array<std::uint8_t, 16> token{};
};

class LifeLineListener {
 public:
  LifeLineListener();  // never throws: where nothing can be listened on, nobody can call

  const LifeLineAddress& address() const noexcept { return address_; }

  struct Caller {
    int rank = 0;
    core::UniqueFd line;
  };
  // The next rank of this job that has called; nothing for now. Strangers are turned away, and
  // second calls of a rank.
  std::optional<Caller> accept();

 private:
  LifeLineAddress address_;
  std::vector<int> known_;
  core::UniqueFd socket_;
  std::vector<core::UniqueFd> strangers_;  // have called and not yet said who they are
};

// Calls the listener on all its addresses at once. Empty where none answers in time.
core::UniqueFd call_life_line(const LifeLineAddress& address, int rank,
                              std::chrono::milliseconds limit);

class LifeLines {
 public:
  // Both ends add theirs: a line counts once the other end has done so, and not if it gave up.
  void add(int rank, core::UniqueFd line);
  std::size_t size() const noexcept { return lines_.size(); }

  // The first rank whose process is gone and has not said goodbye. Does not block.
  std::optional<int> first_gone() noexcept;
  // The end of this process is none to worry about; nor are those of others from now on.
  void say_goodbye() noexcept;

 private:
  struct Line {
    int rank = 0;
    core::UniqueFd socket;
    bool stands = false;
  };
  std::vector<Line> lines_;
  bool left_ = false;
};

}  // namespace sidestream::comm
