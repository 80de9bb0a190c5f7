#include "launch/trainer/anomaly.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/optim/gradient_scaler.hpp"

namespace sidestream::launch {
namespace {

std::string spike_text(const Anomaly& spike, std::string_view what, double value) {
  return fmt::format(
      "step {}: the {} of {:.4g} is {:.1f} standard deviations above the last {} steps{}",
      spike.values.step, what, value, spike.zscore, spike.compared,
      spike.is_early() ? ", counted for less because they are few" : "");
}

}  // namespace

std::string_view Anomaly::name() const {
  switch (kind) {
    case Kind::kLossNotFinite:
      return "loss-not-finite";
    case Kind::kNormNotFinite:
      return "gradient-not-finite";
    case Kind::kLossScaleTooSmall:
      return "loss-scale-too-small";
    case Kind::kLossSpike:
      return "loss-spike";
    case Kind::kNormSpike:
      return "gradient-spike";
  }
  throw core::Error("unknown kind of anomaly");
}

std::string Anomaly::text() const {
  const std::int64_t step = values.step;
  const std::string where = parameter.empty() ? "" : fmt::format(" (first in {})", parameter);
  switch (kind) {
    case Kind::kLossNotFinite:
      return fmt::format("step {}: the loss of rank {} is not finite", step, values.bad_rank);
    case Kind::kNormNotFinite:
      return fmt::format("step {}: the gradient norm is not finite{}", step, where);
    case Kind::kLossScaleTooSmall:
      return fmt::format(
          "step {}: the gradient norm is not finite at a loss scale of {:g}{}, and half of that "
          "would be less than {:g}",
          step, values.least_loss_scale, where, optim::kLeastLossScale);
    case Kind::kLossSpike:
      return spike_text(*this, "loss", values.loss);
    case Kind::kNormSpike:
      return spike_text(*this, "gradient norm", values.grad_norm);
  }
  throw core::Error("unknown kind of anomaly");
}

AnomalyPolicy AnomalyJudge::policy_for(const Anomaly& anomaly) const noexcept {
  if (anomaly.is_early()) return AnomalyPolicy::kWarn;
  return anomaly.is_spike() ? options_.spike_policy : options_.nan_policy;
}

std::optional<Anomaly> AnomalyJudge::look_for_spike(const StepValues& values) const {
  if (options_.spike_policy == AnomalyPolicy::kOff) return std::nullopt;
  const double loss = losses_.zscore(values.loss).value_or(0);
  if (loss > options_.spike_zscore)
    return Anomaly{.kind = Anomaly::Kind::kLossSpike,
                   .values = values,
                   .zscore = loss,
                   .compared = losses_.values().size()};
  const double norm = norms_.zscore(values.grad_norm).value_or(0);
  if (norm > options_.spike_zscore)
    return Anomaly{.kind = Anomaly::Kind::kNormSpike,
                   .values = values,
                   .zscore = norm,
                   .compared = norms_.values().size()};
  return std::nullopt;
}

std::optional<Anomaly> AnomalyJudge::look(const StepValues& values) const {
  if (values.least_loss_scale > 0)
    return Anomaly{.kind = Anomaly::Kind::kLossScaleTooSmall, .values = values};
  if (values.bad_rank >= 0) return Anomaly{.kind = Anomaly::Kind::kLossNotFinite, .values = values};
  if (!std::isfinite(values.grad_norm))
    return Anomaly{.kind = Anomaly::Kind::kNormNotFinite, .values = values};
  return look_for_spike(values);
}

// A value that is used is a value to compare with, a warning included: a loss that has moved for
// good does not warn for ever.
AnomalyJudge::Judgement AnomalyJudge::judge(const StepValues& values) {
  Judgement judgement{.anomaly = look(values)};
  if (judgement.anomaly) judgement.update = policy_for(*judgement.anomaly) == AnomalyPolicy::kWarn;
  if (judgement.update) {
    losses_.keep(values.loss);
    norms_.keep(values.grad_norm);
  }
  return judgement;
}

}  // namespace sidestream::launch
