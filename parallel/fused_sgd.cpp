#include "parallel/fused_sgd.hpp"

#include "core/base/error.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

FusedSgd::FusedSgd(const OptimizerConfig& config, ParameterSpace& parameters,
                   const GradientSpace& gradients)
    : config_{.momentum = config.momentum, .weight_decay = config.weight_decay},
      parameters_(parameters),
      gradients_(gradients),
      pieces_(parameters) {
  if (config_.momentum != 0) momentum_ = parameters.make_state();
}

void FusedSgd::update(const OptimizerStep& step) {
  const auto coefficients = [&](double weight_decay) {
    return optim::SgdCoefficients{.gradient_scale = static_cast<float>(step.gradient_scale),
                                  .lr = static_cast<float>(step.lr),
                                  .momentum = static_cast<float>(config_.momentum),
                                  .weight_decay = static_cast<float>(weight_decay)};
  };
  const optim::SgdCoefficients with_decay = coefficients(config_.weight_decay);
  const optim::SgdCoefficients without_decay = coefficients(0);
  pieces_.for_each([&](const Piece& piece) {
    update_piece(piece, parameters_.at(piece.parameter).decays() ? with_decay : without_decay);
  });
}

void FusedSgd::update_piece(const Piece& piece, const optim::SgdCoefficients& coefficients) const {
  const std::size_t i = piece.parameter;
  const auto update = [&]<typename Gradient>(std::span<Gradient> gradient) {
    optim::SgdRange<Gradient> range{.weights = piece.in_state(floats_of(parameters_.master(i))),
                                    .gradients = piece.of(gradient)};
    if (!momentum_.views.empty())
      range.momentum_buffer = piece.in_state(floats_of(momentum_.views[i]));
    if (parameters_.has_master())
      range.low_precision = piece.of(bfloats_of(parameters_.weights(i)));
    optim::sgd_update(range, coefficients);
  };
  switch (gradients_.dtype()) {
    case core::DType::kFloat32:
      return update(floats_of(gradients_.view(i)));
    case core::DType::kBFloat16:
      return update(bfloats_of(gradients_.view(i)));
    default:
      throw core::Error("The fused optimizer knows gradients in float32 and bfloat16 only.");
  }
}

void FusedSgd::each_state(const VisitState& visit) {
  if (!momentum_.views.empty()) visit(momentum_);
}

std::vector<Moment> FusedSgd::moments(std::size_t parameter) const {
  if (momentum_.views.empty()) return {};
  return sgd_moments(momentum_.views.at(parameter));
}

}  // namespace sidestream::parallel
