// What a rank's device did when: computing, communicating, copying.
//
// Compute is every kernel that is no collective; communication every kernel of NCCL or RCCL; copies
// are memcpy and memset. What a launch of a CUDA graph did whose kernels were not recorded nobody
// knows: it is none of the three. A rank without device events that carries Sidestream's ranges, or
// whose trace says that its host has no device, is a host rank: there the collectives are our
// ranges of that name, and compute is operators and the forward, backward and optimizer ranges,
// less what of them a collective on the same thread takes, a wait for one (which is no second
// communication), or reading input: the model has nothing to do until the batch is there. Other
// traces of the host alone may be of programs whose device was not traced.
#pragma once

#include "profiling/analysis/interval_set.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

enum class Where { kDevice, kHost, kNothing };

struct DeviceActivity {
  Where where = Where::kNothing;  // kNothing: of a host that may have left the work to a device
  IntervalSet compute;
  IntervalSet communication;
  IntervalSet copies;
  IntervalSet unknown = {};  // inside such graphs, with none of the above beside them
  Interval window;           // first start to last end of the first three, else of the graphs

  // Computing, communicating or copying.
  IntervalSet busy() const { return compute | communication | copies; }
};

DeviceActivity device_activity(const trace::RankTimeline& timeline);

}  // namespace sidestream::analysis
