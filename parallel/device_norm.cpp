#include "parallel/device_norm.hpp"

#include <algorithm>
#include <utility>

#include "core/optim/reduce.hpp"
#include "parallel/device_bytes.hpp"

namespace sidestream::parallel {
namespace {

template <typename T>
T* data_of(const torch::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

}  // namespace

DeviceNorm::DeviceNorm(const ParameterSpace& parameters, const GradientSpace& gradients,
                       const DeviceTools& tools)
    : parameters_(parameters), gradients_(gradients), tools_(tools) {
  count_blocks();
  const auto doubles = torch::dtype(torch::kFloat64).device(parameters.device());
  squares_ = torch::zeros({static_cast<std::int64_t>(first_block_.back())}, doubles);
  parameter_squares_ = torch::zeros({static_cast<std::int64_t>(parameters.size())}, doubles);
  scalars_ = torch::zeros({static_cast<std::int64_t>(optim::kStepScalars)}, doubles);
  layout_changed();
}

void DeviceNorm::count_blocks() {
  first_block_ = {0};
  for (const std::size_t elements : parameters_.elements()) {
    first_block_.push_back(first_block_.back() +
                           static_cast<std::uint32_t>(optim::sum_blocks(elements)));
  }
  first_block_on_device_ = bytes_on_device(first_block_, parameters_.device());
}

std::vector<optim::DevicePiece> DeviceNorm::pieces_of(std::size_t parameter) const {
  const auto offset = [](const torch::Tensor& view) {
    return static_cast<std::uint64_t>(view.storage_offset());
  };
  OwnRange range{.count = parameters_.at(parameter).elements(),
                 .offset = offset(parameters_.master(parameter))};
  if (parameters_.is_sharded()) range = parameters_.shards().own(parameter);
  const std::uint64_t low = offset(parameters_.weights(parameter));
  const std::uint64_t gradient = gradients_.plan().offsets.at(parameter);
  std::vector<optim::DevicePiece> pieces;
  for (std::size_t first = range.first; first < range.end(); first += optim::kSumBlock) {
    pieces.push_back(
        {.weight = range.offset + (first - range.first),
         .low = low + first,
         .gradient = gradient + first,
         .count = static_cast<std::uint32_t>(std::min(optim::kSumBlock, range.end() - first)),
         .block = first_block_[parameter] + static_cast<std::uint32_t>(first / optim::kSumBlock),
         .decays = parameters_.at(parameter).decays() ? 1u : 0u,
         .parameter = static_cast<std::uint32_t>(parameter),
         .first = first});
  }
  return pieces;
}

std::vector<optim::DevicePiece> DeviceNorm::list_pieces(const Bucket& bucket) const {
  std::vector<optim::DevicePiece> pieces;
  for (const std::size_t parameter : bucket.parameters) {
    const auto more = pieces_of(parameter);
    pieces.insert(pieces.end(), more.begin(), more.end());
  }
  return pieces;
}

void DeviceNorm::layout_changed() {
  std::vector<optim::DevicePiece> pieces;
  first_piece_ = {0};
  for (const Bucket& bucket : gradients_.plan().buckets) {
    const auto more = list_pieces(bucket);
    pieces.insert(pieces.end(), more.begin(), more.end());
    first_piece_.push_back(pieces.size());
  }
  pieces_ = bytes_on_device(pieces, parameters_.device());
}

optim::PieceTable DeviceNorm::table(std::size_t first, std::size_t count) const {
  return {.pieces = data_of<const optim::DevicePiece>(pieces_) + first, .count = count};
}

optim::PieceTable DeviceNorm::pieces_in(std::size_t bucket) const {
  const std::size_t first = first_piece_.at(bucket);
  return table(first, first_piece_.at(bucket + 1) - first);
}

optim::FlatGradients DeviceNorm::flat_gradients() const {
  return {.data = gradients_.bucket_data(0), .dtype = gradients_.dtype()};
}

const optim::StepScalars* DeviceNorm::scalars_on_device() const {
  return data_of<const optim::StepScalars>(scalars_);
}

void DeviceNorm::measure() {
  if (parameters_.is_sharded()) squares_.zero_();  // of the slices of others
  tools_.kernels->squares(
      {.table = all_pieces(), .gradients = flat_gradients(), .squares = data_of<double>(squares_)},
      tools_.current_stream());
  if (parameters_.is_sharded()) parameters_.shards().merge(squares_);
}

std::vector<double> DeviceNorm::parameter_squares() const {
  const torch::Tensor squares = parameter_squares_.cpu();
  const double* data = squares.const_data_ptr<double>();
  return {data, data + squares.numel()};
}

void DeviceNorm::settle(const optim::StepRule* rule) {
  tools_.kernels->settle({.squares = data_of<double>(squares_),
                          .first_block = data_of<const std::uint32_t>(first_block_on_device_),
                          .parameters = parameters_.size(),
                          .parameter_squares = data_of<double>(parameter_squares_),
                          .scalars = data_of<optim::StepScalars>(scalars_),
                          .rule = rule},
                         tools_.current_stream());
}

}  // namespace sidestream::parallel
