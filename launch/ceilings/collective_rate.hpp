// How fast a collective is between the ranks, as nccl-tests defines it (its doc/PERFORMANCE.md).
#pragma once

#include <cstddef>

#include "launch/ceilings/collective_trial.hpp"
#include "launch/ceilings/repetitions.hpp"

namespace sidestream::launch {

struct CollectiveRate {
  std::size_t bytes = 0;  // of the whole buffer: what an all-gather leaves, a reduce-scatter takes
  double seconds = 0;     // of the slowest rank, averaged over the repetitions
  double least_seconds = 0;  // of those in a row that took least
  int repeats = 0;
  bool stopped = false;  // when some rank was asked to
  int ranks = 1;
  Collective collective = Collective::kAllReduce;

  // bytes / time.
  double algorithm_bytes_per_s() const;
  // Times 2 (n - 1) / n for an all-reduce and (n - 1) / n for the others: what each rank's link has
  // carried in each direction, so that it can be held against the hardware whatever n.
  double bus_bytes_per_s() const;
};

// Collective. The first few do not count. Short ones are timed many in a row from one barrier on,
// as nccl-tests times them. It then averages over the ranks unless told otherwise (-a 3); here the
// slowest rank counts, since a training step waits for it.
CollectiveRate measure_collective(comm::Communicator& communicator, const CollectiveKind& kind,
                                  std::size_t bytes, const RepeatRule& rule);

}  // namespace sidestream::launch
