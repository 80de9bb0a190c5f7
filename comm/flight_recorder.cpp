#include "comm/flight_recorder.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::comm {
std::string_view name_of(FlightState state) {
  switch (state) {
    case FlightState::kQueued:
      return "queued";
    case FlightState::kStarted:
      return "started";
    case FlightState::kFinished:
      return "finished";
    case FlightState::kFailed:
      return "failed";
  }
  throw core::Error("unknown state of a collective");
}

std::string_view name_of(FlightPlane plane) {
  return plane == FlightPlane::kHost ? "host" : "device";
}

// The newest are asked for most often.
Flight* FlightRecorder::find(FlightPlane plane, std::uint64_t sequence) noexcept {
  const std::uint64_t kept = std::min<std::uint64_t>(noted_, kKept);
  for (std::uint64_t back = 1; back <= kept; ++back) {
    Flight& flight = ring_[(noted_ - back) % kKept];
    if (flight.plane == plane && flight.call.sequence == sequence) return &flight;
  }
  return nullptr;
}

void FlightRecorder::note(FlightPlane plane, const Call& call, FlightState state) noexcept {
  const std::int64_t now = record::monotonic_ns();
  const std::lock_guard lock(mutex_);
  Flight* flight = state == FlightState::kQueued ? nullptr : find(plane, call.sequence);
  if (flight == nullptr) {
    flight = &ring_[noted_++ % kKept];
    *flight = {.call = call, .plane = plane, .queued_ns = now};
  }
  flight->state = state;
  if (state == FlightState::kStarted) flight->started_ns = now;
  if (state == FlightState::kFinished || state == FlightState::kFailed) flight->finished_ns = now;
}

std::vector<Flight> FlightRecorder::flights() const {
  const std::lock_guard lock(mutex_);
  std::vector<Flight> flights;
  for (std::uint64_t i = noted_ > kKept ? noted_ - kKept : 0; i < noted_; ++i)
    flights.push_back(ring_[i % kKept]);
  return flights;
}

}  // namespace sidestream::comm
