// The last collectives of this rank, always kept: what it called, how far each call got, and when.
// What is left to read when a job hangs.
//
// Written by the thread that calls, the one that drives and a watchdog; read by anybody, also while
// a collective hangs.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"

namespace sidestream::comm {

enum class FlightState : std::uint8_t {
  kQueued,    // called, an earlier one is not done
  kStarted,   // the first in the queue
  kFinished,  // done on this rank
  kFailed,
};
std::string_view name_of(FlightState state);

// Of which communicator: sequences of the two are counted apart.
enum class FlightPlane : std::uint8_t { kHost, kDevice };
std::string_view name_of(FlightPlane plane);

struct Flight {
  Call call;
  FlightPlane plane = FlightPlane::kHost;
  FlightState state = FlightState::kQueued;
  std::int64_t queued_ns = 0;    // CLOCK_MONOTONIC
  std::int64_t started_ns = 0;   // 0: not yet
  std::int64_t finished_ns = 0;  // or failed; 0: not yet
};

class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 512;

  void note(FlightPlane plane, const Call& call, FlightState state) noexcept;

  // Oldest first.
  std::vector<Flight> flights() const;

 private:
  Flight* find(FlightPlane plane, std::uint64_t sequence) noexcept;

  mutable std::mutex mutex_;
  std::array<Flight, kKept> ring_{};
  std::uint64_t noted_ = 0;  // calls so far
};

}  // namespace sidestream::comm
