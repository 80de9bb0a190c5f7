// Rates between two log lines, and the time that is left. Time is passed in, so that a test needs
// no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace sidestream::launch {

struct StepCost {
  std::int64_t samples = 0;  // over all ranks
  std::int64_t tokens = 0;   // over all ranks
  double batch_s = 0;        // wall time of the step on this rank
  double reader_s = 0;       // part of it that waited for data
};

struct Rates {
  double batch_cost_s = 0;  // means
  double reader_cost_s = 0;
  double samples_per_s = 0;  // total over total, so that a slow step weighs as much as it took
  double tokens_per_s = 0;
};

class RateMeter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RateMeter(std::int64_t total_steps) : total_steps_(total_steps) {}

  // After every step. `step` counts from 1 and need not start there.
  void add(std::int64_t step, const StepCost& cost, TimePoint now);

  // Of the steps since the last call; forgets them. Rates are over the steps' own time: an
  // evaluation or a checkpoint between two steps is no part of it.
  Rates take();

  // Seconds until total_steps at the pace since the first step of this process, evaluations and
  // checkpoints included. Empty before the second step.
  std::optional<double> eta_s() const;

 private:
  std::int64_t total_steps_;
  std::int64_t steps_ = 0;
  StepCost sum_;
  std::int64_t first_step_ = 0;
  std::int64_t last_step_ = 0;
  TimePoint first_time_;
  TimePoint last_time_;
};

}  // namespace sidestream::launch
