// A step whose loss or gradient is not what it should be, and whether its update is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/optim/spike_detector.hpp"
#include "launch/options/numerics_options.hpp"

namespace sidestream::launch {

// What a step came to, the same on all ranks.
struct StepValues {
  std::int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;
  int bad_rank = -1;  // the lowest whose own loss is not finite
  // Gradients are not finite at the least loss scale either; of that step, otherwise 0.
  double least_loss_scale = 0;
};

struct Anomaly {
  enum class Kind { kLossNotFinite, kNormNotFinite, kLossScaleTooSmall, kLossSpike, kNormSpike };
  Kind kind = Kind::kLossNotFinite;
  StepValues values = {};
  double zscore = 0;           // of a spike
  std::size_t compared = 0;    // with so many steps before: a spike
  std::string parameter = {};  // whose gradient is not finite, as far as known

  bool is_spike() const noexcept { return kind == Kind::kLossSpike || kind == Kind::kNormSpike; }
  // Judged by few steps, at the start of a run: no more than a warning.
  bool is_early() const noexcept { return is_spike() && compared < optim::SpikeDetector::kWindow; }
  std::string_view name() const;  // "loss-not-finite"
  std::string text() const;       // "step 5: the loss of rank 1 is not finite"
};

// Decides by the policies of the run. All ranks ask it the same and get the same answer.
class AnomalyJudge {
 public:
  struct Judgement {
    std::optional<Anomaly> anomaly = {};
    bool update = true;
  };

  AnomalyJudge() = default;
  explicit AnomalyJudge(const NumericsOptions& options) : options_(options) {}

  Judgement judge(const StepValues& values);
  AnomalyPolicy policy_for(const Anomaly& anomaly) const noexcept;
  // Whether an update may be left out: then a step is judged before its update.
  bool drops_updates() const noexcept { return options_.drops_updates(); }

  // Of losses and gradient norms: part of what a checkpoint keeps.
  optim::SpikeDetector& losses() noexcept { return losses_; }
  optim::SpikeDetector& norms() noexcept { return norms_; }

 private:
  std::optional<Anomaly> look(const StepValues& values) const;
  std::optional<Anomaly> look_for_spike(const StepValues& values) const;

  NumericsOptions options_;
  optim::SpikeDetector losses_;
  optim::SpikeDetector norms_;
};

}  // namespace sidestream::launch
