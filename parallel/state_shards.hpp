// Optimizer state of which each rank keeps its slices of the buckets: ZeRO-1 (Rajbhandari et al.,
// "ZeRO", 2020, stage 1) for ranks that share no memory.
//
// A flat state tensor holds this rank's slices of all buckets one behind another. What needs a
// whole parameter's state (another layout, a checkpoint) has it gathered piece by piece: nobody
// ever holds more of it than kGatheredBytes.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <torch/types.h>

#include "comm/communicator.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/own_ranges.hpp"

namespace sidestream::parallel {

// Of the memory that a gather takes on every rank, whatever the size of a bucket; where there are
// more ranks than elements in it, one of each.
inline constexpr std::size_t kGatheredBytes = std::size_t{16} << 20;

// Some elements of a parameter's state, as one dimension.
struct StatePiece {
  std::size_t parameter = 0;
  std::size_t first = 0;  // element of the parameter
  torch::Tensor values;
};

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

  // Collective: calls visit(piece) until it has seen every element of every parameter once, on all
  // ranks alike; values lie on the device, wherever `flat` does, are to be read in the order of the
  // current stream, and are gone with the next call. Blocks a host rank. `visit` must not throw.
  // Throws CollectiveError, PeerError.
  using VisitPiece = std::function<void(const StatePiece&)>;
  void gather(const torch::Tensor& flat, const VisitPiece& visit) const;

  // Collective: the same state in the slices of `next`, to a flat tensor of those. Throws as
  // gather().
  void move(const torch::Tensor& flat, const StateShards& next, const torch::Tensor& to) const;

  // Collective: every value is there on all ranks afterwards, bit for bit, when one rank has set it
  // and the others hold zero. Blocks a host rank, orders the current stream of a device. `doubles`
  // is float64.
  void merge(const torch::Tensor& doubles) const;

 private:
  // Elements of every rank's slice of a bucket, from `first` of the slice on.
  struct Part {
    std::size_t bucket, first, count;
  };
  void visit_part(const Part& part, const torch::Tensor& all, const VisitPiece& visit) const;

  comm::Communicator& communicator_;
  BucketPlan plan_;
  std::vector<std::size_t> elements_;
  std::vector<OwnRange> ranges_;
  std::vector<std::size_t> slice_offsets_;
  CurrentStream current_stream_;
  torch::Device device_;
};

}  // namespace sidestream::parallel
