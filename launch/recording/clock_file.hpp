// clock.json of a window: how the clocks of the ranks stand to each other.
//
// A sample is a barrier, seen from both sides: no rank leaves it before all have come, so that with
// rank 0 inside it from s0 to e0 and another rank from s to e (each on its own realtime clock) the
// moment (s0 + e0) / 2 of rank 0 and (s + e) / 2 of the other are the same, give or take half of
// (e0 - s0) + (e - s). Barriers come back to back: all but the first are entered together. They are
// taken before and after the window, so that offset and drift can be told apart.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::launch {

// What one rank saw: realtime before and after each barrier.
struct BarrierTimes {
  std::int64_t enter_ns = 0;
  std::int64_t leave_ns = 0;
};

struct ClockNotes {
  std::vector<BarrierTimes> barriers;
  std::vector<record::ClockReading> readings;  // both clocks of this rank, before and after
};

// Collective: every rank calls it at the same place. Adds to `notes`.
void sample_clocks(comm::Communicator& communicator, ClockNotes& notes);

// Collective: gives rank 0 the text of clock.json, the others nothing.
std::string gather_clock_text(comm::Communicator& communicator, const ClockNotes& notes);

// The text of clock.json of what ranks noted, in rank order. `boots`: the same for ranks on one
// clock.
std::string clock_text(const std::vector<ClockNotes>& ranks, const std::vector<std::string>& boots);

}  // namespace sidestream::launch
