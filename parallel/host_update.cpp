#include "parallel/host_update.hpp"

#include <algorithm>
#include <cmath>

#include "core/optim/elements.hpp"

namespace sidestream::parallel {

HostUpdate::HostUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                       const GradientSpace& gradients)
    : grad_clip_(config.optimizer.grad_clip),
      scaler_(config.loss_scale),
      norm_(parameters, gradients),
      optimizer_(make_optimizer(config.optimizer, parameters, gradients)) {
  if (!scaler_.is_on()) return;
  loss_scale_ = torch::zeros({}, torch::kFloat32);
  publish_loss_scale();
}

void HostUpdate::publish_loss_scale() const {
  const torch::NoGradGuard no_grad;
  if (loss_scale_.defined()) loss_scale_.fill_(scaler_.scale());
}

void HostUpdate::restore_loss_scale(const optim::LossScaleState& state) {
  scaler_.restore(state);
  publish_loss_scale();
}

double HostUpdate::update(const UpdateRequest& request) {
  const double norm = grad_norm(request.average);
  const double average = request.average / scaler_.scale();
  const optim::UpdateVerdict verdict = scaler_.update(std::isfinite(norm));
  publish_loss_scale();
  if (verdict != optim::UpdateVerdict::kTake) return norm;
  const double clip =
      grad_clip_ > 0 ? std::min(1.0, grad_clip_ / (norm + optim::kClipEpsilon)) : 1.0;
  optimizer_->update({.step = request.step,
                      .lr = request.lr,
                      .gradient_scale = average * clip,
                      .left_out = static_cast<std::int64_t>(scaler_.state().left_out)});
  return norm;
}

}  // namespace sidestream::parallel
