// What of a run its recorder had no room for, and what a user can do about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/options/record_options.hpp"

namespace sidestream::launch {

struct RecordingLosses {
  std::uint64_t ranges = 0;
  std::uint64_t room_needed = 0;  // for ranges of a thread, in which none is lost; 0: not known
  std::uint64_t samples = 0;      // of the system
};

// Sentences for whoever watches the run; none where nothing was lost.
std::vector<std::string> warnings_of(const RecordingLosses& losses, const RecordOptions& options,
                                     int rank);

}  // namespace sidestream::launch
