// What all ranks have to know after each backward: the mean loss, and whether someone wants to
// stop.
#pragma once

#include <cstdint>

#include "comm/communicator.hpp"

namespace sidestream::launch {

struct StepVote {
  double loss = 0;  // mean over this rank's micro-steps
  bool stop_requested = false;
};

struct StepVerdict {
  double mean_loss = 0;     // over ranks, added in rank order
  bool stop = false;        // at least one rank asked
  int first_bad_rank = -1;  // lowest rank whose loss is not finite
};

// Collective; blocks.
StepVerdict agree_on_step(comm::Communicator& communicator, const StepVote& vote);

}  // namespace sidestream::launch
