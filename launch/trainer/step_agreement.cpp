#include "launch/trainer/step_agreement.hpp"

#include <cmath>

#include "comm/exchange_values.hpp"

namespace sidestream::launch {

StepVerdict agree_on_step(comm::Communicator& communicator, const StepVote& vote) {
  StepVerdict verdict;
  double sum = 0;
  int rank = 0;
  for (const StepVote& theirs :
       comm::exchange_values(communicator, vote, {.purpose = "step votes"})) {
    sum += theirs.loss;
    verdict.exposed_comm_ns += theirs.exposed_comm_ns;
    if (rank == 0) verdict.grad_norm = theirs.grad_norm;
    verdict.stop = verdict.stop || theirs.stop_requested;
    verdict.save_stage_done = verdict.save_stage_done && theirs.save_stage_done;
    if (!std::isfinite(theirs.loss) && verdict.first_bad_rank < 0) verdict.first_bad_rank = rank;
    ++rank;
  }
  verdict.mean_loss = sum / communicator.size();
  verdict.exposed_comm_ns /= communicator.size();
  return verdict;
}

}  // namespace sidestream::launch
