#include "parallel/fused_sgd.hpp"

#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {

FusedSgd::FusedSgd(const OptimizerConfig& config, ParameterSpace& parameters,
                   const GradientSpace& gradients)
    : config_{.momentum = config.momentum, .weight_decay = config.weight_decay},
      rounding_seed_(config.rounding_seed),
      parameters_(parameters),
      gradients_(gradients),
      pieces_(parameters) {
  if (config_.momentum != 0) momentum_ = parameters.make_state(config.state_dtype);
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
  const optim::RoundingSource rounding{.seed = rounding_seed_, .step = step.step};
  pieces_.for_each([&](const Piece& piece) {
    update_piece(piece, parameters_.at(piece.parameter).decays() ? with_decay : without_decay,
                 rounding);
  });
}

void FusedSgd::update_piece(const Piece& piece, const optim::SgdCoefficients& coefficients,
                            const optim::RoundingSource& rounding) const {
  const std::size_t i = piece.parameter;
  with_gradients(gradients_.view(i), [&]<typename Gradient>(std::span<Gradient> gradient) {
    const auto update = [&]<typename Moment>(std::span<Moment> momentum) {
      const auto with_copy = [&]<typename Low>(std::span<Low> copy) {
        optim::sgd_update(
            optim::SgdRange<Gradient, Moment, Low>{
                .weights = piece.in_state(floats_of(parameters_.master(i))),
                .gradients = piece.of(gradient),
                .momentum_buffer = momentum,
                .low_precision = copy,
                .rounding = optim::rounding_place(rounding, i, piece.first)},
            coefficients);
      };
      if (!parameters_.has_master()) return with_copy(std::span<core::BFloat16>());
      with_low_precision(parameters_.weights(i), [&](auto copy) { with_copy(piece.of(copy)); });
    };
    if (momentum_.views.empty()) return update(std::span<float>());
    with_elements(momentum_.views[i], [&](auto momentum) { update(piece.in_state(momentum)); });
  });
}

void FusedSgd::each_state(const VisitState& visit) {
  if (!momentum_.views.empty()) visit(momentum_);
}

std::vector<Moment> FusedSgd::moments(std::size_t parameter) const {
  if (momentum_.views.empty()) return {};
  return sgd_moments(momentum_.views.at(parameter));
}

}  // namespace sidestream::parallel
