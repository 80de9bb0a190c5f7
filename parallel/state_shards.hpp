// Optimizer state of which each rank keeps its slices of the buckets: ZeRO-1 (Rajbhandari et al.,
// "ZeRO", 2020, stage 1) for ranks that share no memory.
//
// A flat state tensor holds this rank's slices of all buckets one behind another. What needs a
// whole parameter's state (another layout, a checkpoint) has it gathered bucket by bucket.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <torch/torch.h>

#include "comm/communicator.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/own_ranges.hpp"

namespace sidestream::parallel {

class StateShards {
 public:
  // The communicator must outlive this. plan.slices: its ranks. device: whose memory it works on.
  StateShards(comm::Communicator& communicator, BucketPlan plan, std::vector<std::size_t> elements,
              CurrentStream current_stream, torch::Device device);

  const BucketPlan& plan() const noexcept { return plan_; }
  const OwnRange& own(std::size_t parameter) const { return ranges_.at(parameter); }
  std::size_t elements() const { return own_elements(plan_); }
  // Where the slice of a bucket begins: in a buffer with the layout of the plan, and in a flat
  // state tensor.
  std::size_t slice_begin(std::size_t bucket) const;
  std::size_t slice_offset(std::size_t bucket) const { return slice_offsets_.at(bucket); }

  // The own range of each parameter in a flat state tensor: one dimension, `count` elements.
  std::vector<torch::Tensor> views_of(const torch::Tensor& flat) const;

  // Collective: calls visit(i, state) for every parameter, with all of its state as one dimension
  // on the device, wherever `flat` lies, to be read in the order of the current stream. Blocks a
  // host rank. `visit` must not throw. Throws CollectiveError, PeerError.
  void gather(const torch::Tensor& flat,
              const std::function<void(std::size_t, const torch::Tensor&)>& visit) const;

  // Collective: the same state in the slices of `next`, to a flat tensor of those. Throws as
  // gather().
  void move(const torch::Tensor& flat, const StateShards& next, const torch::Tensor& to) const;

  // Collective: every value is there on all ranks afterwards, bit for bit, when one rank has set it
  // and the others hold zero. Blocks a host rank, orders the current stream of a device. `doubles`
  // is float64.
  void merge(const torch::Tensor& doubles) const;

 private:
  comm::Communicator& communicator_;
  BucketPlan plan_;
  std::vector<std::size_t> elements_;
  std::vector<OwnRange> ranges_;
  std::vector<std::size_t> slice_offsets_;
  CurrentStream current_stream_;
  torch::Device device_;
};

}  // namespace sidestream::parallel
