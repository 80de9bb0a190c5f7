// The numbers of one logged step, as they go to metrics.jsonl, to TensorBoard and to the screen.
#pragma once

#include <cstdint>
#include <optional>

namespace sidestream::launch {

// Rates and costs are over the steps since the last logged one, rates over all ranks. What was not
// measured is empty.
struct StepMetrics {
  std::int64_t step = 0;  // counts from 1
  std::int64_t epoch = 0;
  double loss = 0;       // mean over ranks and micro-steps, before the update
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double batch_cost_s = 0;   // mean wall time of a step
  double reader_cost_s = 0;  // part of it that waited for data
  double samples_per_s = 0;
  double tokens_per_s = 0;
  std::optional<double> mfu = {};
  std::optional<std::int64_t> memory_bytes = {};  // peak PSS, or peak allocated on a GPU
  std::optional<double> eta_s = {};
  std::optional<double> val_loss = {};  // only where an evaluation took place
  // In fp16: of the next step, and the updates of the run that were left out because of it.
  std::optional<double> loss_scale = {};
  std::optional<std::int64_t> left_out = {};

  friend bool operator==(const StepMetrics&, const StepMetrics&) = default;
};

}  // namespace sidestream::launch
