// How much of a collective hides behind computation on these ranks.
#pragma once

#include <cstddef>

#include <torch/types.h>

#include "launch/ceilings/collective_trial.hpp"
#include "launch/ceilings/repetitions.hpp"

namespace sidestream::launch {

// Times of the slowest rank, medians over the repetitions: the four are held against each other,
// and one repetition that stalls says nothing about the others.
struct OverlapRate {
  std::size_t bytes = 0;
  double compute_s = 0;             // products alone
  double collective_s = 0;          // started without waiting, then waited for
  double together_s = 0;            // started, products, then waited for
  double compute_in_company_s = 0;  // of that, until the products are done
  int repeats = 0;
  bool stopped = false;  // when some rank was asked to

  // 1: the shorter one costs nothing; 0: as if one came after the other; below: worse than that.
  double hidden_share() const;
  // 0.1: the products take a tenth longer beside the collective.
  double compute_slowdown() const;
};

// Collective. Products of `device` last about as long as the collective. The collective is started
// as the trainer starts it: after what the calling thread's stream has queued, driven by NCCL's own
// stream, or on a host rank by the progress thread. In each repetition all three are measured, so
// that a machine whose speed drifts is as fast for one as for the others.
OverlapRate measure_overlap(comm::Communicator& communicator, const CollectiveKind& kind,
                            std::size_t bytes, const torch::Device& device, const RepeatRule& rule);

}  // namespace sidestream::launch
