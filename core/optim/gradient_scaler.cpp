#include "core/optim/gradient_scaler.hpp"

#include <string>

#include "core/base/error.hpp"
#include "core/optim/check.hpp"

namespace sidestream::optim {

void LossScaleConfig::validate() const {
  if (kind == LossScaling::kOff) return;
  require_in_range("--loss-scale", scale, {.low = kLeastLossScale, .high = kMostLossScale});
  if (interval >= 1) return;
  throw core::ConfigError("--loss-scale-interval: expected at least 1 step, found " +
                          std::to_string(interval));
}

LossScaleState first_state(const LossScaleConfig& config) {
  if (config.kind == LossScaling::kOff) return {};
  return {.scale = config.scale};
}

LossScaleState resumed_state(const LossScaleConfig& config, const LossScaleState& saved) {
  LossScaleState state = saved;
  if (config.kind != LossScaling::kDynamic) {
    state.scale = first_state(config).scale;
    state.good_steps = 0;
  }
  return state;
}

GradientScaler::GradientScaler(const LossScaleConfig& config)
    : config_(config), state_(first_state(config)) {}

UpdateVerdict GradientScaler::update(bool finite) {
  const UpdateVerdict verdict = verdict_on(config_, state_, finite);
  state_ = after_step(config_, state_, verdict);
  return verdict;
}

void GradientScaler::restore(const LossScaleState& state) {
  state_ = resumed_state(config_, state);
}

}  // namespace sidestream::optim
