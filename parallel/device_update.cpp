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

DeviceUpdate::DeviceUpdate(const DataParallelConfig& config, ParameterSpace& parameters,
                           const GradientSpace& gradients, const DeviceTools& tools)
    : DeviceStepUpdate(config, parameters, gradients, tools) {
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  if (adamw || config_.momentum != 0) first_moments_ = parameters.make_state(config_.state_dtype);
  if (adamw) second_moments_ = parameters.make_state(config_.state_dtype);
  if (!parameters.state_copies()) return;
  stream_ = std::make_unique<StateStream>(parameters.state_copies(), parameters.device(),
                                          tools.state_slice_elements);
  adopt_layout();
}

void DeviceUpdate::layout_changed() {
  DeviceStepUpdate::layout_changed();
  if (stream_) adopt_layout();
}

void DeviceUpdate::adopt_layout() {
  std::vector<std::vector<optim::DevicePiece>> groups(1);
  for (const Bucket& bucket : norm_.buckets()) {
    std::vector<optim::DevicePiece> pieces = norm_.list_pieces(bucket);
    if (lies_apart()) {
      groups.push_back(std::move(pieces));
    } else {
      groups.front().insert(groups.front().end(), pieces.begin(), pieces.end());
    }
  }
  if (lies_apart()) groups.erase(groups.begin());
  stream_->adopt(std::move(groups));
}

void DeviceUpdate::finish_state() {
  if (stream_) stream_->finish();
}

optim::LowCopy DeviceUpdate::low_precision() const {
  if (!parameters_.has_master()) return nullptr;
  return {parameters_.flat_weights().mutable_data_ptr(), parameters_.dtype()};
}

double DeviceUpdate::update(const UpdateRequest& /*request*/) {
  settle();
  if (stream_) {
    stream_batches();
  } else {
    for (const Batch& batch : batches()) run(batch);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void DeviceUpdate::run(const Batch& batch) {
  if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
    run_adamw(batch);
  } else {
    run_sgd(batch);
  }
}

// The slices of sharded weights lie apart, those of their moments one behind another.
bool DeviceUpdate::lies_apart() const {
  return parameters_.is_sharded() && !parameters_.has_master();
}

// What counts places in the moments: from here they are those of the weights.
float* DeviceUpdate::weights_in(std::size_t bucket) const {
  const StateShards& shards = parameters_.shards();
  return parameters_.flat_master().mutable_data_ptr<float>() + shards.slice_begin(bucket) -
         shards.slice_offset(bucket);
}

std::vector<DeviceUpdate::Batch> DeviceUpdate::batches() const {
  const Batch all{.table = norm_.all_pieces(),
                  .weights = parameters_.flat_master().mutable_data_ptr<float>(),
                  .first_moments = data_of(first_moments_),
                  .second_moments = data_of(second_moments_)};
  if (!lies_apart()) return {all};
  std::vector<Batch> batches(norm_.buckets().size(), all);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    batches[b].table = norm_.pieces_in(b);
    batches[b].weights = weights_in(b);
  }
  return batches;
}

// Weights in fp32 are what the forward reads: they stay on the device. SGD without momentum has no
// other state, and then nothing is left to stream.
void DeviceUpdate::stream_batches() {
  std::vector<torch::Tensor> states;
  if (parameters_.has_master()) states.push_back(parameters_.flat_master());
  for (const FlatState* state : {&first_moments_, &second_moments_}) {
    if (!state->views.empty()) states.push_back(state->flat);
  }
  if (states.empty()) {
    for (const Batch& batch : batches()) run(batch);
    return;
  }
  stream_->update(states, [&](const StateStream::Arrived& arrived) {
    auto next = arrived.states.begin();
    Batch batch{.table = arrived.table, .weights = {}, .first_moments = {}, .second_moments = {}};
    if (parameters_.has_master()) {
      batch.weights = static_cast<float*>(*next++);
    } else {
      batch.weights = (lies_apart() ? weights_in(arrived.slice.group)
                                    : parameters_.flat_master().mutable_data_ptr<float>()) +
                      arrived.slice.begin;
    }
    if (next != arrived.states.end()) batch.first_moments = *next++;
    if (next != arrived.states.end()) batch.second_moments = *next;
    run(batch);
  });
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
                         .first_moments = batch.first_moments,
                         .second_moments = batch.second_moments,
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
                       .momentum = batch.first_moments,
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
