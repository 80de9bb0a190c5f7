#include "parallel/fused_adamw.hpp"

#include "core/base/error.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

FusedAdamW::FusedAdamW(const OptimizerConfig& config, ParameterSpace& parameters,
                       const GradientSpace& gradients)
    : config_{.beta1 = config.beta1,
              .beta2 = config.beta2,
              .eps = config.eps,
              .weight_decay = config.weight_decay},
      parameters_(parameters),
      gradients_(gradients),
      pieces_(parameters),
      first_moments_(parameters.make_state()),
      second_moments_(parameters.make_state()) {}

void FusedAdamW::update(const OptimizerStep& step) {
  const auto coefficients = [&](double weight_decay) {
    return optim::AdamWCoefficients::make(config_, {.step = step.step,
                                                    .lr = step.lr,
                                                    .weight_decay = weight_decay,
                                                    .gradient_scale = step.gradient_scale});
  };
  const optim::AdamWCoefficients with_decay = coefficients(config_.weight_decay);
  const optim::AdamWCoefficients without_decay = coefficients(0);
  pieces_.for_each([&](const Piece& piece) {
    update_piece(piece, parameters_.at(piece.parameter).decays() ? with_decay : without_decay);
  });
}

void FusedAdamW::update_piece(const Piece& piece,
                              const optim::AdamWCoefficients& coefficients) const {
  const std::size_t i = piece.parameter;
  const auto update = [&]<typename Gradient>(std::span<Gradient> gradient) {
    optim::AdamWRange<Gradient> range{
        .weights = piece.in_state(floats_of(parameters_.master(i))),
        .gradients = piece.of(gradient),
        .first_moments = piece.in_state(floats_of(first_moments_.views[i])),
        .second_moments = piece.in_state(floats_of(second_moments_.views[i]))};
    if (parameters_.has_master())
      range.low_precision = piece.of(bfloats_of(parameters_.weights(i)));
    optim::adamw_update(range, coefficients);
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

void FusedAdamW::each_state(const VisitState& visit) {
  visit(first_moments_);
  visit(second_moments_);
}

std::vector<Moment> FusedAdamW::moments(std::size_t parameter) const {
  return adamw_moments(first_moments_.views.at(parameter), second_moments_.views.at(parameter));
}

}  // namespace sidestream::parallel
