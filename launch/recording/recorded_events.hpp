// What the recorder has, as events of a Chrome trace: one JSON text an event.
//
// Ranges lie on the thread that they were opened on, so that operators nest inside them; operations
// in flight lie on lanes of their own, as many as overlap. A range that had not ended carries
// "open": true.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "launch/recording/trace_origin.hpp"
#include "profiling/record/recorder.hpp"
#include "profiling/record/system_sample.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::launch {

using TakeEvent = std::function<void(std::string_view event)>;

// Monotonic times as the file writes them: microseconds of realtime since its base.
struct TraceClock {
  record::WallClock wall;
  std::int64_t base_ns = 0;

  std::string text(std::int64_t monotonic_ns) const;
  // Both ends on the file's clock, which runs a little faster or slower: else a range that is cut
  // where a file ends would end in the next one.
  std::int64_t realtime_between(std::int64_t start_ns, std::int64_t end_ns) const;
};

enum class StepRanges { kWritten, kLeftOut };  // left out: somebody else wrote them already

void write_recorded_ranges(const record::Recording& recording, const record::NameTable& names,
                           const TraceClock& clock, const TraceOrigin& origin, StepRanges steps,
                           const TakeEvent& take);

// Samples of the system as counters.
void write_counters(const std::vector<record::SystemSample>& samples, const TraceClock& clock,
                    const TraceOrigin& origin, const TakeEvent& take);

// Name and place of the process, and the names of the threads and lanes above.
void write_process_names(const TraceOrigin& origin, const TakeEvent& take);
void write_thread_names(const record::Recording& recording, const TraceOrigin& origin,
                        const TakeEvent& take);

// {"backend": "mpi", "rank": 1, "world_size": 2}
std::string distributed_info_text(const TraceOrigin& origin);

// The object of profiling/ranges/trace_metadata.hpp: what the recorder says about itself, and the
// figures of the run that are known.
std::string metadata_text(const record::Recording& recording, std::uint64_t dropped_samples,
                          const trace::RunFigures& figures);

}  // namespace sidestream::launch
