#include "parallel/device_update.hpp"

#include <limits>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

void* data_of(const FlatState& state) {
  return state.views.empty() ? nullptr : state.flat.mutable_data_ptr();
}

}  // namespace

DeviceUpdate::DeviceUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
                           const GradientSpace& gradients, const DeviceTools& tools)
    : DeviceStepUpdate(config, parameters, gradients, tools) {
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  if (adamw || config_.momentum != 0) first_moments_ = parameters.make_state(config.state_dtype);
  if (adamw) second_moments_ = parameters.make_state(config.state_dtype);
}

core::BFloat16* DeviceUpdate::low_precision() const {
  return parameters_.has_master()
             ? static_cast<core::BFloat16*>(parameters_.flat_weights().mutable_data_ptr())
             : nullptr;
}

double DeviceUpdate::update(const UpdateRequest& request) {
  settle(request);
  if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
    run_adamw(request);
  } else {
    run_sgd(request);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void DeviceUpdate::run_adamw(const UpdateRequest& request) {
  const optim::AdamWConfig config{.beta1 = config_.beta1,
                                  .beta2 = config_.beta2,
                                  .eps = config_.eps,
                                  .weight_decay = config_.weight_decay};
  const auto coefficients = [&](double weight_decay) {
    return optim::AdamWCoefficients::make(
        config, {.step = request.step, .lr = request.lr, .weight_decay = weight_decay});
  };
  tools_.kernels->adamw({.table = norm_.all_pieces(),
                         .gradients = norm_.flat_gradients(),
                         .weights = parameters_.flat_master().mutable_data_ptr<float>(),
                         .first_moments = data_of(first_moments_),
                         .second_moments = data_of(second_moments_),
                         .low_precision = low_precision(),
                         .with_decay = coefficients(config_.weight_decay),
                         .without_decay = coefficients(0),
                         .scalars = norm_.scalars_on_device(),
                         .moment_dtype = config_.state_dtype,
                         .rounding = rounding_of(request)},
                        tools_.current_stream());
}

void DeviceUpdate::run_sgd(const UpdateRequest& request) {
  const auto coefficients = [&](double weight_decay) {
    return optim::SgdCoefficients{.lr = static_cast<float>(request.lr),
                                  .momentum = static_cast<float>(config_.momentum),
                                  .weight_decay = static_cast<float>(weight_decay)};
  };
  tools_.kernels->sgd({.table = norm_.all_pieces(),
                       .gradients = norm_.flat_gradients(),
                       .weights = parameters_.flat_master().mutable_data_ptr<float>(),
                       .momentum = data_of(first_moments_),
                       .low_precision = low_precision(),
                       .with_decay = coefficients(config_.weight_decay),
                       .without_decay = coefficients(0),
                       .scalars = norm_.scalars_on_device(),
                       .moment_dtype = config_.state_dtype,
                       .rounding = rounding_of(request)},
                      tools_.current_stream());
}

std::vector<Moment> DeviceUpdate::moments(std::size_t parameter) const {
  if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
    return adamw_moments(first_moments_.views.at(parameter), second_moments_.views.at(parameter));
  }
  if (first_moments_.views.empty()) return {};
  return sgd_moments(first_moments_.views.at(parameter));
}

}  // namespace sidestream::parallel
