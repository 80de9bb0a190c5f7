#include "profiling/verify/loss_curve.hpp"

namespace sidestream::verify {

LossCurve loss_curve_of(const RecordedRun& run) {
  LossCurve curve;
  const auto seed = run.config.find("seed");
  if (seed != run.config.end()) curve.seed = seed->second;
  for (const RecordedStep& step : run.steps) {
    curve.training.push_back({step.step, step.loss});
    if (step.val_loss) curve.validation.push_back({step.step, *step.val_loss});
  }
  return curve;
}

}  // namespace sidestream::verify
