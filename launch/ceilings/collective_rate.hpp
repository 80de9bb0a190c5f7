// How fast a collective is between the ranks, as nccl-tests defines it (its doc/PERFORMANCE.md).
#pragma once

#include <cstddef>
#include <string_view>

namespace sidestream::comm {
class Communicator;
}

namespace sidestream::launch {

enum class Collective { kAllReduce, kAllGather, kReduceScatter };
std::string_view name_of(Collective collective);  // as `bench` has it: "allreduce"

struct CollectiveRate {
  std::size_t bytes = 0;  // of the whole buffer: what an all-gather leaves, a reduce-scatter takes
  double seconds = 0;     // of the slowest rank in the best of the repetitions
  int ranks = 1;
  Collective collective = Collective::kAllReduce;

  // bytes / time.
  double algorithm_bytes_per_s() const;
  // Times 2 (n - 1) / n for an all-reduce and (n - 1) / n for the others: what each rank's link has
  // carried in each direction, so that it can be held against the hardware whatever n.
  double bus_bytes_per_s() const;
};

// Collective. The best of what fits into `seconds`, in fp32; a first one does not count. The buffer
// is as near to `bytes` as equal parts of the ranks allow.
CollectiveRate measure_collective(comm::Communicator& communicator, Collective collective,
                                  std::size_t bytes, double seconds);

}  // namespace sidestream::launch
