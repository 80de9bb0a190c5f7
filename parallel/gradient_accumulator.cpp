#include "parallel/gradient_accumulator.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace sidestream::parallel {

torch::Tensor GradientAccumulator::lend(std::size_t parameter) {
  if (filled_[parameter] || parameters_.dtype() != gradients_.dtype()) return {};
  if (++times_asked_[parameter] > 1) return {};
  // A tensor of its own, for autograd takes over what nobody else holds; and not by an operator,
  // which profiles would show in the model's layers.
  return gradients_.view(parameter).variable_data();
}

bool GradientAccumulator::take_lent(std::size_t parameter) {
  if (filled_[parameter] || times_asked_[parameter] != 1) return false;
  hold_sum(parameter, gradients_.view(parameter));
  filled_[parameter] = true;
  return true;
}

void GradientAccumulator::require_single_use(std::size_t parameter) const {
  const Parameter& taken = parameters_.at(parameter);
  const torch::Tensor& gradient = taken.tensor.grad();
  if (gradient._version() == 0 && gradient.data_ptr() == gradients_.view(parameter).data_ptr())
    return;
  throw core::Error(fmt::format(
      "Parameter '{}' got a gradient of another use after that of a fused operator had left for "
      "its sum. Set gradient_as_bucket_view to false for a module that uses a weight twice.",
      taken.name));
}

void GradientAccumulator::begin_step() {
  for (const Parameter& parameter : parameters_.parameters())
    parameter.tensor.mutable_grad().reset();
  filled_.assign(filled_.size(), false);
  times_asked_.assign(times_asked_.size(), 0);
  sums_.assign(sums_.size(), Sum());
}

bool GradientAccumulator::adds_before_rounding() const {
  return core::size_of(parameters_.dtype()) > core::size_of(gradients_.dtype());
}

// The version of a view counts what is written anywhere in the buffer, that of its data only what
// is written through it.
void GradientAccumulator::hold_sum(std::size_t parameter, const torch::Tensor& sum) {
  sums_[parameter] = {.tensor = sum.variable_data()};
  parameters_.at(parameter).tensor.mutable_grad() = sums_[parameter].tensor;
}

// Autograd has added to it so many times at most, and nobody else has touched it.
void GradientAccumulator::require_sum(std::size_t parameter, std::int64_t most_additions) {
  Sum& sum = sums_[parameter];
  const torch::Tensor& gradient = parameters_.at(parameter).tensor.grad();
  if (sum.tensor.is_same(gradient)) {
    const std::int64_t additions = std::int64_t{gradient._version()} - sum.version;
    sum.version += additions;
    if (additions >= 0 && additions <= most_additions) return;
  }
  throw core::Error(fmt::format(
      "Parameter '{}' has another gradient than the one that its micro-steps add to. Each step "
      "begins without gradients: do not call zero_grad() between micro-steps, nor write into "
      "gradients, nor backward() with create_graph.",
      parameters_.at(parameter).name));
}

void GradientAccumulator::take_unrounded(std::size_t parameter, MicroStep micro_step) {
  if (sums_[parameter].tensor.defined()) {
    require_sum(parameter, 1);
  } else {
    hold_sum(parameter, parameters_.at(parameter).tensor.grad());
  }
  if (micro_step == MicroStep::kLast) round_into_view(parameter);
}

void GradientAccumulator::round_into_view(std::size_t parameter) {
  gradients_.view(parameter).copy_(sums_[parameter].tensor);
  sums_[parameter] = {};
  parameters_.at(parameter).tensor.mutable_grad() = torch::Tensor();
  filled_[parameter] = true;
}

void GradientAccumulator::take(std::size_t parameter, MicroStep micro_step) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& gradient = parameters_.at(parameter).tensor.mutable_grad();
  // An operator may have none for a parameter that it has used; autograd tells us all the same.
  if (!gradient.defined() && !sums_[parameter].tensor.defined()) {
    if (micro_step == MicroStep::kLast) fill_if_missing(parameter);
    return;
  }
  if (gradient.defined() && gradient.layout() != torch::kStrided)
    throw core::Error(
        fmt::format("Parameter '{}' has a sparse gradient: only dense ones are summed "
                    "(torch::nn::EmbeddingOptions::sparse(false)).",
                    parameters_.at(parameter).name));
  if (adds_before_rounding()) return take_unrounded(parameter, micro_step);
  const torch::Tensor& view = gradients_.view(parameter);
  const bool same_dtype = parameters_.dtype() == gradients_.dtype();
  if (filled_[parameter] && same_dtype) return require_sum(parameter, 1);
  if (filled_[parameter]) {
    view.add_(gradient);
  } else if (gradient.data_ptr() != view.data_ptr()) {
    view.copy_(gradient);
  }
  filled_[parameter] = true;
  gradient = same_dtype ? view : torch::Tensor();
  if (same_dtype && micro_step == MicroStep::kMoreFollow) hold_sum(parameter, view);
}

void GradientAccumulator::fill_if_missing(std::size_t parameter) {
  const torch::NoGradGuard no_grad;
  if (sums_[parameter].tensor.defined()) require_sum(parameter, 0);
  if (filled_[parameter]) return;
  if (sums_[parameter].tensor.defined()) return round_into_view(parameter);
  gradients_.view(parameter).zero_();
  filled_[parameter] = true;
}

}  // namespace sidestream::parallel
