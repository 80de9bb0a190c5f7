#include "parallel/fused_adamw.hpp"

#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

FusedAdamW::FusedAdamW(const OptimizerConfig& config, ParameterSpace& parameters,
                       const GradientSpace& gradients)
    : config_{.beta1 = config.beta1,
              .beta2 = config.beta2,
              .eps = config.eps,
              .weight_decay = config.weight_decay},
      rounding_seed_(config.rounding_seed),
      parameters_(parameters),
      gradients_(gradients),
      pieces_(parameters),
      first_moments_(parameters.make_state(config.state_dtype)),
      second_moments_(parameters.make_state(config.state_dtype)) {}

void FusedAdamW::update(const OptimizerStep& step) {
  const auto coefficients = [&](double weight_decay) {
    return optim::AdamWCoefficients::make(config_, {.step = step.updates(),
                                                    .lr = step.lr,
                                                    .weight_decay = weight_decay,
                                                    .gradient_scale = step.gradient_scale});
  };
  const optim::AdamWCoefficients with_decay = coefficients(config_.weight_decay);
  const optim::AdamWCoefficients without_decay = coefficients(0);
  const optim::RoundingSource rounding{.seed = rounding_seed_, .step = step.step};
  pieces_.for_each([&](const Piece& piece) {
    update_piece(piece, parameters_.at(piece.parameter).decays() ? with_decay : without_decay,
                 rounding);
  });
}

void FusedAdamW::update_piece(const Piece& piece, const optim::AdamWCoefficients& coefficients,
                              const optim::RoundingSource& rounding) const {
  const std::size_t i = piece.parameter;
  with_gradients(gradients_.view(i), [&]<typename Gradient>(std::span<Gradient> gradient) {
    with_elements(first_moments_.views[i], [&]<typename Moment>(std::span<Moment> first) {
      const auto update = [&]<typename Low>(std::span<Low> copy) {
        optim::adamw_update(
            optim::AdamWRange<Gradient, Moment, Low>{
                .weights = piece.in_state(floats_of(parameters_.master(i))),
                .gradients = piece.of(gradient),
                .first_moments = piece.in_state(first),
                .second_moments = piece.in_state(elements_of<Moment>(second_moments_.views[i])),
                .low_precision = copy,
                .rounding = optim::rounding_place(rounding, i, piece.first)},
            coefficients);
      };
      if (!parameters_.has_master()) return update(std::span<core::BFloat16>());
      with_low_precision(parameters_.weights(i), [&](auto copy) { update(piece.of(copy)); });
    });
  });
}

void FusedAdamW::each_state(const VisitState& visit) {
  visit(first_moments_);
  visit(second_moments_);
}

std::vector<Moment> FusedAdamW::moments(std::size_t parameter) const {
  return adamw_moments(first_moments_.views.at(parameter), second_moments_.views.at(parameter));
}

}  // namespace sidestream::parallel
