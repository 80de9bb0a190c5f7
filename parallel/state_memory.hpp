// Where weights and optimizer state lie: in memory of this rank, or in one copy that all ranks of a
// node share.
//
// Shared, each rank updates its part of the parameters and reads what the others have updated:
// ZeRO-1 (Rajbhandari et al., "ZeRO", 2020, stage 1), with a barrier in place of the all-gather.
// Ranks that share no memory may shard the state instead: see state_shards.hpp. State of a device
// may lie in the memory of its host, from where updates stream it: see state_stream.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "comm/communicator.hpp"
#include "core/base/copy_engine.hpp"
#include "core/base/dtype.hpp"
#include "parallel/config.hpp"
#include "parallel/parameter_list.hpp"

namespace sidestream::parallel {

// This rank's part of work that the ranks share out.
struct Part {
  int index = 0;
  int count = 1;
};

class StateMemory {
 public:
  // Of this rank alone.
  StateMemory() = default;

  // Collective. Shared when the configuration asks for it or leaves the choice, and it can be.
  // copies: null, or state lies in host memory from which they bring it to the device.
  StateMemory(comm::Communicator& communicator, const std::vector<Parameter>& parameters,
              const DataParallelConfig& config, std::shared_ptr<core::CopyEngine> copies = {});

  bool is_shared() const noexcept { return shared_ != nullptr; }
  // Asked for, and nothing is shared: each rank is to keep its slices of the state.
  bool is_sharded() const noexcept { return is_sharded_; }
  Part part() const;

  // Zeros. All ranks ask for the same tensors in the same order.
  torch::Tensor zeros(std::size_t elements, core::DType dtype, torch::Device device);

  // Zeros that the ranks will gather, in memory that the communicator knows where that makes it
  // faster. Collective, of the same size on all ranks. Throws MemoryError, CollectiveError,
  // PeerError.
  torch::Tensor zeros_to_gather(std::size_t elements, core::DType dtype,
                                torch::Device device) const;

  // Null: state lies where the weights do.
  const std::shared_ptr<core::CopyEngine>& copies() const noexcept { return copies_; }
  // Zeros in host memory that copies() reads and writes. Throws MemoryError.
  torch::Tensor host_zeros(std::size_t elements, torch::ScalarType type) const;

  // When shared: waits until every rank is here; what it has written before can then be read by
  // all. Returns the nanoseconds that it took. Throws CollectiveError, PeerError.
  std::int64_t meet() const;

 private:
  comm::Communicator* communicator_ = nullptr;  // where ranks share or shard state
  std::shared_ptr<std::byte> shared_;
  std::size_t shared_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  bool is_sharded_ = false;
  std::shared_ptr<core::CopyEngine> copies_;
};

}  // namespace sidestream::parallel
