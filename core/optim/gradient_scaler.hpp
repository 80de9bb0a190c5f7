// The loss scale of training in fp16: the loss is multiplied before backward, so that small
// gradients do not become zero, and the update divides again. A step whose gradients are not finite
// was scaled too much: its update is left out, and the next scale is half of it.
//
// Sequence and defaults of torch.amp.GradScaler (backoff 0.5, growth 2), except that a scale never
// falls below kLeastLossScale: gradients that are not finite at that one are not finite because the
// training has diverged.
#pragma once

#include <cstdint>

#include "core/base/vectorize.hpp"

namespace sidestream::optim {

enum class LossScaling {
  kOff,
  kFixed,    // always the same; what is not finite is no matter of the scale
  kDynamic,  // as above
};

struct LossScaleConfig {
  LossScaling kind = LossScaling::kOff;
  double scale = 65536;          // fixed, or where a dynamic one starts
  std::int64_t interval = 2000;  // steps in a row with finite gradients after which it doubles

  void validate() const;  // throws ConfigError that names the flag, the range and the value
};

inline constexpr double kLeastLossScale = 1;
inline constexpr double kMostLossScale = 16777216;  // that may be asked for; 2^24

// Numbers of one kind, because a device keeps them among others of the step.
struct LossScaleState {
  double scale = 1;
  double good_steps = 0;  // in a row since the scale changed
  double left_out = 0;    // updates, of the whole run

  friend bool operator==(const LossScaleState&, const LossScaleState&) = default;
};

enum class UpdateVerdict {
  kTake,      // gradients are finite, or the scale is not dynamic
  kLeaveOut,  // the next step has half of the scale
  kGiveUp,    // half of the scale would be too small: the state stays as it is
};

SIDESTREAM_INLINE UpdateVerdict verdict_on(const LossScaleConfig& config,
                                           const LossScaleState& state, bool finite) {
  if (finite || config.kind != LossScaling::kDynamic) return UpdateVerdict::kTake;
  return state.scale * 0.5 < kLeastLossScale ? UpdateVerdict::kGiveUp : UpdateVerdict::kLeaveOut;
}

// The state after a step with this verdict: the formula of torch._amp_update_scale_.
SIDESTREAM_INLINE LossScaleState after_step(const LossScaleConfig& config,
                                            const LossScaleState& old, UpdateVerdict verdict) {
  LossScaleState now = old;
  if (config.kind != LossScaling::kDynamic || verdict == UpdateVerdict::kGiveUp) return now;
  if (verdict == UpdateVerdict::kLeaveOut) {
    now.scale = old.scale * 0.5;
    now.good_steps = 0;
    now.left_out = old.left_out + 1;
    return now;
  }
  now.good_steps = old.good_steps + 1;
  if (now.good_steps < static_cast<double>(config.interval)) return now;
  constexpr double kLargestFloat = 3.4028234663852886e38;
  now.good_steps = 0;
  if (old.scale * 2 <= kLargestFloat) now.scale = old.scale * 2;
  return now;
}

// For host ranks.
class GradientScaler {
 public:
  explicit GradientScaler(const LossScaleConfig& config);

  bool is_on() const noexcept { return config_.kind != LossScaling::kOff; }
  double scale() const noexcept { return state_.scale; }  // 1 when off
  const LossScaleState& state() const noexcept { return state_; }

  // After a step's gradients are there; the state is then that of the next step.
  UpdateVerdict update(bool finite);

  // A fixed scale stays the one of the configuration.
  void restore(const LossScaleState& state);

 private:
  LossScaleConfig config_;
  LossScaleState state_;
};

// Of a run that begins.
LossScaleState first_state(const LossScaleConfig& config);
// Of a run that goes on from `saved`, with this configuration.
LossScaleState resumed_state(const LossScaleConfig& config, const LossScaleState& saved);

}  // namespace sidestream::optim
