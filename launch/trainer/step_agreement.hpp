// What all ranks have to know after each backward: the mean loss, the gradient norm, and whether
// someone wants to stop.
#pragma once

#include <cstdint>

#include "comm/communicator.hpp"

namespace sidestream::launch {

struct StepVote {
  double loss = 0;       // mean over this rank's micro-steps
  double grad_norm = 0;  // of the summed gradients
  bool stop_requested = false;
  bool save_stage_done = false;      // this rank's part of a save that is under way
  std::int64_t exposed_comm_ns = 0;  // of the step before, where collectives blocked this rank
};

struct StepVerdict {
  double mean_loss = 0;              // over ranks, added in rank order
  double grad_norm = 0;              // rank 0's: what all ranks decide by
  bool stop = false;                 // at least one rank asked
  bool save_stage_done = true;       // of every rank
  int first_bad_rank = -1;           // lowest rank whose loss is not finite
  std::int64_t exposed_comm_ns = 0;  // mean over ranks
};

// Collective; blocks.
StepVerdict agree_on_step(comm::Communicator& communicator, const StepVote& vote);

}  // namespace sidestream::launch
