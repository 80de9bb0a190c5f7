// One optimizer step of this rank, on the processor or on a GPU: what the training loop sees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/optim/gradient_scaler.hpp"
#include "launch/trainer/anomaly.hpp"
#include "launch/trainer/graph_use.hpp"

namespace sidestream::launch {

// What a step came to, the same on all ranks.
struct StepNumbers {
  std::int64_t step = 0;
  double loss = 0;                      // mean over ranks and micro-steps, before the update
  double grad_norm = 0;                 // before clipping
  std::optional<Anomaly> anomaly = {};  // may be of a step before this one
  bool updated = true;                  // false: the weights are those before the step
  // With one: of the next step, and how many updates it has left out in the whole run.
  std::optional<optim::LossScaleState> loss_scale = {};
  std::string news = {};  // a sentence for the log; empty: none
};

struct StepOutcome {
  double lr = 0;
  std::uint64_t epoch = 0;
  // That have come, in the order of their steps: of this one, or on a GPU of the one before, of
  // both or of none. Those of the last step of a run are there when it ends, and so are those of a
  // step in which the ranks agree to stop.
  std::vector<StepNumbers> numbers = {};
  bool stop_requested = false;   // agreed by all ranks
  bool save_stage_done = false;  // likewise: a save that is under way can go on
  std::int64_t step_ns = 0;      // on this rank
  std::int64_t reader_ns = 0;    // of that, waiting for data
  // Of the step before, which is when the others say theirs: blocked by collectives, mean over
  // ranks. A GPU does not say.
  std::optional<std::int64_t> exposed_comm_ns = {};
  std::string news = {};  // a sentence for the log; empty: none

  // Null where they have not come.
  const StepNumbers* numbers_of(std::int64_t step) const {
    const auto found = std::ranges::find(numbers, step, &StepNumbers::step);
    return found == numbers.end() ? nullptr : &*found;
  }
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Collective. `stop_requested` tells, after backward, whether this rank was asked to stop. What
  // to do about an anomaly is the caller's.
  virtual StepOutcome run(std::int64_t step, const std::function<bool()>& stop_requested) = 0;

  // Of the steps so far; nothing where no graph was asked for.
  virtual std::optional<GraphUse> graph_use() const { return std::nullopt; }

 protected:
  Stepper() = default;
};

}  // namespace sidestream::launch
