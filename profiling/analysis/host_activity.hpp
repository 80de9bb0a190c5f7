// What the host threads that feed a device were doing: the reasons for its idle time.
//
// Only threads that launch device work or carry the steps count: loader threads that run beside
// them explain nothing as long as nobody waits for them. Where no kernel communicates, collectives
// count on any thread: the host stages them for its device.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "profiling/analysis/device_activity.hpp"
#include "profiling/analysis/interval_set.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

struct HostActivity {
  IntervalSet data;           // fetching a batch, copying it to the device
  IntervalSet communication;  // inside a collective of our own
  IntervalSet locks;
  IntervalSet sync;  // cudaStreamSynchronize and its like, .item()
  // Any operator or call. Ranges and Python functions span whole steps, also where nothing is done.
  IntervalSet active;
  IntervalSet after_sync = {};  // after_syncs(), which needs the device
};

HostActivity host_activity(const trace::RankTimeline& timeline);

// From the end of each synchronisation that waited for kernels to the device's next work: meanwhile
// the host had queued nothing, so that nothing hides what it does until it has launched again. A
// wait that found no kernel running is not why the device has nothing to do.
IntervalSet after_syncs(const IntervalSet& sync, const DeviceActivity& activity,
                        const IntervalSet& busy);

// Calls that launch work on a device, and none of that work in the trace: what a host operator took
// is its launch, and no rate can be told from it.
bool device_work_is_missing(const trace::RankTimeline& timeline);

// For every device event with a known launch: from the end of the device work before it to its
// launch. In that time the device had nothing to do because nothing was launched.
class LaunchGaps {
 public:
  static constexpr std::int64_t kNotKnown = INT64_MAX;

  // When each interval of `busy` was launched.
  LaunchGaps(IntervalSet busy, std::vector<std::int64_t> launched_at)
      : busy_(std::move(busy)), launched_at_(std::move(launched_at)) {}

  IntervalSet within(Interval window) const;

 private:
  IntervalSet busy_;
  std::vector<std::int64_t> launched_at_;
};

LaunchGaps launch_gaps(const trace::RankTimeline& timeline, const IntervalSet& busy);

}  // namespace sidestream::analysis
