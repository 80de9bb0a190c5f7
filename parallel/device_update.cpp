#include "parallel/device_update.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

// A copy of plain data on the device, as bytes. Waits for the copy: it is made rarely.
template <typename T>
torch::Tensor on_device(const std::vector<T>& data, const torch::Device& device) {
  const torch::Tensor bytes =
      torch::from_blob(const_cast<T*>(data.data()),
                       {static_cast<std::int64_t>(data.size() * sizeof(T))}, torch::kUInt8);
  return bytes.clone().to(device);
}

template <typename T>
T* data_of(const torch::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

float* floats(const FlatState& state) {
  return state.views.empty() ? nullptr : state.flat.mutable_data_ptr<float>();
}

}  // namespace

DeviceUpdate::DeviceUpdate(const OptimizerConfig& config, ParameterSpace& parameters,
                           const GradientSpace& gradients, DeviceTools tools)
    : config_(config), parameters_(parameters), gradients_(gradients), tools_(std::move(tools)) {
  const bool adamw = config_.algorithm == OptimizerAlgorithm::kAdamW;
  if (adamw || config_.momentum != 0) first_moments_ = parameters.make_state();
  if (adamw) second_moments_ = parameters.make_state();
  count_blocks();
  const auto doubles = torch::dtype(torch::kFloat64).device(parameters.device());
  squares_ = torch::zeros({static_cast<std::int64_t>(first_block_.back())}, doubles);
  parameter_squares_ = torch::zeros({static_cast<std::int64_t>(parameters.size())}, doubles);
  scalars_ = torch::zeros({3}, doubles);
  layout_changed();
}

void DeviceUpdate::count_blocks() {
  first_block_ = {0};
  for (const std::size_t elements : parameters_.elements()) {
    first_block_.push_back(first_block_.back() +
                           static_cast<std::uint32_t>(optim::sum_blocks(elements)));
  }
  first_block_on_device_ = on_device(first_block_, parameters_.device());
}

std::vector<optim::DevicePiece> DeviceUpdate::pieces_of(std::size_t parameter) const {
  const auto offset = [](const torch::Tensor& view) {
    return static_cast<std::uint64_t>(view.storage_offset());
  };
  const std::uint64_t weight = offset(parameters_.master(parameter));
  const std::uint64_t low = offset(parameters_.weights(parameter));
  const std::uint64_t gradient = gradients_.plan().offsets.at(parameter);
  const std::size_t elements = parameters_.at(parameter).elements();
  std::vector<optim::DevicePiece> pieces;
  for (std::size_t first = 0; first < elements; first += optim::kSumBlock) {
    pieces.push_back(
        {.weight = weight + first,
         .low = low + first,
         .gradient = gradient + first,
         .count = static_cast<std::uint32_t>(std::min(optim::kSumBlock, elements - first)),
         .block = first_block_[parameter] + static_cast<std::uint32_t>(pieces.size()),
         .decays = parameters_.at(parameter).decays() ? 1u : 0u,
         .unused = 0});
  }
  return pieces;
}

void DeviceUpdate::layout_changed() {
  std::vector<optim::DevicePiece> pieces;
  first_piece_ = {0};
  for (const Bucket& bucket : gradients_.plan().buckets) {
    for (const std::size_t parameter : bucket.parameters) {
      const auto more = pieces_of(parameter);
      pieces.insert(pieces.end(), more.begin(), more.end());
    }
    first_piece_.push_back(pieces.size());
  }
  pieces_ = on_device(pieces, parameters_.device());
}

optim::PieceTable DeviceUpdate::table(std::size_t first, std::size_t count) const {
  return {.pieces = data_of<const optim::DevicePiece>(pieces_) + first, .count = count};
}

optim::FlatGradients DeviceUpdate::flat_gradients() const {
  return {.data = gradients_.bucket_data(0), .dtype = gradients_.dtype()};
}

core::BFloat16* DeviceUpdate::low_precision() const {
  return parameters_.has_master() ? data_of<core::BFloat16>(parameters_.flat_weights()) : nullptr;
}

void DeviceUpdate::add_bucket(std::size_t bucket) {
  const std::size_t first = first_piece_.at(bucket);
  tools_.kernels->squares({.table = table(first, first_piece_.at(bucket + 1) - first),
                           .gradients = flat_gradients(),
                           .squares = data_of<double>(squares_)},
                          tools_.current_stream());
}

void DeviceUpdate::settle(const UpdateRequest& request) {
  tools_.kernels->settle(
      {.squares = data_of<double>(squares_),
       .first_block = data_of<const std::uint32_t>(first_block_on_device_),
       .parameters = parameters_.size(),
       .parameter_squares = data_of<double>(parameter_squares_),
       .scalars = data_of<optim::StepScalars>(scalars_),
       .rule = {.average = request.average, .max_norm = config_.grad_clip, .step = request.step}},
      tools_.current_stream());
}

double DeviceUpdate::grad_norm(double average) {
  settle({.average = average});
  return scalars_[0].item<double>();
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
  tools_.kernels->adamw({.table = table(0, first_piece_.back()),
                         .gradients = flat_gradients(),
                         .weights = parameters_.flat_master().mutable_data_ptr<float>(),
                         .first_moments = floats(first_moments_),
                         .second_moments = floats(second_moments_),
                         .low_precision = low_precision(),
                         .with_decay = coefficients(config_.weight_decay),
                         .without_decay = coefficients(0),
                         .scalars = data_of<const optim::StepScalars>(scalars_)},
                        tools_.current_stream());
}

void DeviceUpdate::run_sgd(const UpdateRequest& request) {
  const auto coefficients = [&](double weight_decay) {
    return optim::SgdCoefficients{.lr = static_cast<float>(request.lr),
                                  .momentum = static_cast<float>(config_.momentum),
                                  .weight_decay = static_cast<float>(weight_decay)};
  };
  tools_.kernels->sgd({.table = table(0, first_piece_.back()),
                       .gradients = flat_gradients(),
                       .weights = parameters_.flat_master().mutable_data_ptr<float>(),
                       .momentum = floats(first_moments_),
                       .low_precision = low_precision(),
                       .with_decay = coefficients(config_.weight_decay),
                       .without_decay = coefficients(0),
                       .scalars = data_of<const optim::StepScalars>(scalars_)},
                      tools_.current_stream());
}

std::vector<Moment> DeviceUpdate::moments(std::size_t parameter) const {
  if (config_.algorithm == OptimizerAlgorithm::kAdamW) {
    return {{"exp_avg", first_moments_.views.at(parameter)},
            {"exp_avg_sq", second_moments_.views.at(parameter)}};
  }
  if (first_moments_.views.empty()) return {};
  return {{"momentum_buffer", first_moments_.views.at(parameter)}};
}

}  // namespace sidestream::parallel
