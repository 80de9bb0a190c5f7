#include "launch/reporting/rate_meter.hpp"

#include <algorithm>

namespace sidestream::launch {

void RateMeter::add(std::int64_t step, const StepCost& cost, TimePoint now) {
  if (first_step_ == 0) {
    first_step_ = step;
    first_time_ = now;
  }
  last_step_ = step;
  last_time_ = now;
  ++steps_;
  sum_.samples += cost.samples;
  sum_.tokens += cost.tokens;
  sum_.batch_s += cost.batch_s;
  sum_.reader_s += cost.reader_s;
}

Rates RateMeter::take() {
  Rates rates;
  if (steps_ > 0) {
    rates.batch_cost_s = sum_.batch_s / static_cast<double>(steps_);
    rates.reader_cost_s = sum_.reader_s / static_cast<double>(steps_);
  }
  if (sum_.batch_s > 0) {
    rates.samples_per_s = static_cast<double>(sum_.samples) / sum_.batch_s;
    rates.tokens_per_s = static_cast<double>(sum_.tokens) / sum_.batch_s;
  }
  steps_ = 0;
  sum_ = {};
  return rates;
}

std::optional<double> RateMeter::eta_s() const {
  if (last_step_ <= first_step_) return std::nullopt;
  const double elapsed_s = std::chrono::duration<double>(last_time_ - first_time_).count();
  const double step_s = elapsed_s / static_cast<double>(last_step_ - first_step_);
  return step_s * static_cast<double>(std::max<std::int64_t>(0, total_steps_ - last_step_));
}

}  // namespace sidestream::launch
