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

double DeviceUpdate::update(const UpdateRequest& /*request*/) {
  settle();
  for (const Batch& batch : batches()) {
    if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
      run_adamw(batch);
    } else {
      run_sgd(batch);
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The slices of sharded weights lie apart, those of their moments one behind another.
std::vector<DeviceUpdate::Batch> DeviceUpdate::batches() const {
  auto* weights = parameters_.flat_master().mutable_data_ptr<float>();
  const bool apart = parameters_.is_sharded() && !parameters_.has_master();
  if (!apart) return {{.table = norm_.all_pieces(), .weights = weights}};
  std::vector<Batch> batches;
  const StateShards& shards = parameters_.shards();
  for (std::size_t b = 0; b < shards.plan().buckets.size(); ++b) {
    const std::size_t shift = shards.slice_begin(b) - shards.slice_offset(b);
    batches.push_back({.table = norm_.pieces_in(b), .weights = weights + shift});
  }
  return batches;
}

void DeviceUpdate::each_state(const VisitState& visit) {
  for (FlatState* state : {&first_moments_, &second_moments_}) {
    if (!state->views.empty()) visit(*state);
  }
}

void DeviceUpdate::run_adamw(const Batch& batch) {
  tools_.kernels->adamw({.table = batch.table,
                         .gradients = norm_.flat_gradients(),
                         .weights = batch.weights,
                         .first_moments = data_of(first_moments_),
                         .second_moments = data_of(second_moments_),
                         .low_precision = low_precision(),
                         .scalars = norm_.scalars_on_device(),
                         .rule = rule(),
                         .moment_dtype = config_.state_dtype},
                        tools_.current_stream());
}

void DeviceUpdate::run_sgd(const Batch& batch) {
  tools_.kernels->sgd({.table = batch.table,
                       .gradients = norm_.flat_gradients(),
                       .weights = batch.weights,
                       .momentum = data_of(first_moments_),
                       .low_precision = low_precision(),
                       .scalars = norm_.scalars_on_device(),
                       .rule = rule(),
                       .moment_dtype = config_.state_dtype},
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
