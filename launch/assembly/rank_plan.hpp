// What a rank is going to take, from shapes alone: nothing is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "launch/options/train_options.hpp"
#include "model/activation_memory.hpp"
#include "parallel/memory_plan.hpp"

namespace sidestream::launch {

struct PlanPlace {
  int ranks = 1;  // of the job
  int ranks_on_host = 1;
  parallel::RanksShare share = parallel::RanksShare::kMemory;
};

// The copy that a checkpoint is written from, beside training.
struct SnapshotBytes {
  std::size_t first_rank = 0, all_ranks = 0;

  std::size_t on_host(int ranks) const {
    return std::min(all_ranks, first_rank * static_cast<std::size_t>(ranks));
  }
};

struct RankPlan {
  parallel::MemoryPlan state = {};
  model::ActivationMemory activations = {};  // of one micro-step
  SnapshotBytes snapshot = {};
  std::size_t copied_bytes = 0;  // of all ranks of a host, while a checkpoint is written

  std::size_t training_bytes() const { return state.total_bytes() + activations.peak(); }
  // No activations.
  std::size_t state_bytes() const { return state.peak_bytes(); }
  // Of a GPU's host, for --offload.
  std::size_t pinned_bytes() const {
    return state.host_state_bytes + state.moving_host_bytes + activations.host;
  }
  // copy_bytes: what a checkpoint is written from, where that is in the same memory.
  std::size_t peak_bytes(std::size_t copy_bytes) const {
    return std::max(training_bytes(), state.start_bytes) + copy_bytes;
  }
};

// For the model of these options, whose vocabulary is set; other flags may change from one plan to
// the next.
class RankPlanner {
 public:
  RankPlanner(const TrainOptions& options, const PlanPlace& place);

  RankPlan plan(const TrainOptions& options) const;
  // What becomes of the flags there.
  parallel::DataParallelConfig config(const TrainOptions& options) const;

  const PlanPlace& place() const noexcept { return place_; }
  const std::vector<parallel::ParameterShape>& shapes() const noexcept { return shapes_; }

 private:
  PlanPlace place_;
  std::vector<parallel::ParameterShape> shapes_;
};

// Of one micro-step of a rank. `options` must have its vocabulary set.
model::ActivationMemory activations_of(const TrainOptions& options);

}  // namespace sidestream::launch
