// One collective with its buffers, started as often as one likes.
#pragma once

#include <cstddef>
#include <string_view>

#include "comm/communicator.hpp"
#include "core/base/dtype.hpp"

namespace sidestream::launch {

enum class Collective { kAllReduce, kAllGather, kReduceScatter };
std::string_view name_of(Collective collective);  // as `bench` has it: "allreduce"

struct CollectiveKind {
  Collective collective = Collective::kAllReduce;
  core::DType dtype = core::DType::kFloat32;
};

class CollectiveTrial {
 public:
  // Collective. The buffer is as near to `bytes` as equal parts of the ranks allow, zero-filled.
  CollectiveTrial(comm::Communicator& communicator, const CollectiveKind& kind, std::size_t bytes);

  // Of the whole buffer: what an all-gather leaves, a reduce-scatter takes.
  std::size_t bytes() const noexcept { return whole_.bytes; }

  // Collective, as Communicator's own.
  comm::Work start(const comm::CollectiveOptions& options);

  // Collective: seconds of one of `operations` in a row after a barrier, on this rank. On a GPU all
  // of them are queued before the host waits, as nccl-tests does.
  double run(int operations);

 private:
  comm::Communicator& communicator_;
  CollectiveKind kind_;
  std::size_t part_elements_ = 0;
  comm::Allocation whole_;  // of all_gather and reduce_scatter each rank's part lies in it
};

}  // namespace sidestream::launch
