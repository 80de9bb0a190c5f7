#include "launch/trainer/step_agreement.hpp"

#include <cmath>
#include <cstring>
#include <string>

namespace sidestream::launch {

StepVerdict agree_on_step(comm::Communicator& communicator, const StepVote& vote) {
  static_assert(std::is_trivially_copyable_v<StepVote>);
  std::string mine(sizeof(StepVote), '\0');
  std::memcpy(mine.data(), &vote, sizeof(vote));
  StepVerdict verdict;
  double sum = 0;
  int rank = 0;
  for (const std::string& bytes : communicator.exchange(mine)) {
    StepVote theirs;
    std::memcpy(&theirs, bytes.data(), sizeof(theirs));
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
