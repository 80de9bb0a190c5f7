#include "parallel/gradient_norm.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>

#include "core/base/error.hpp"
#include "core/optim/reduce.hpp"
#include "parallel/tensor_types.hpp"

namespace sidestream::parallel {
namespace {

template <typename Element>
double block_square(std::span<Element> gradient, std::size_t first_element) {
  const std::size_t count = std::min(optim::kSumBlock, gradient.size() - first_element);
  return optim::sum_of_squares(std::span<const Element>(gradient.subspan(first_element, count)));
}

double block_square(const torch::Tensor& gradient, core::DType dtype, std::size_t first_element) {
  switch (dtype) {
    case core::DType::kFloat32:
      return block_square(floats_of(gradient), first_element);
    case core::DType::kBFloat16:
      return block_square(bfloats_of(gradient), first_element);
    case core::DType::kFloat16:
      return block_square(halves_of(gradient), first_element);
    default:
      throw core::Error("The gradient norm knows float32, bfloat16 and float16 only.");
  }
}

}  // namespace

GradientNorm::GradientNorm(const ParameterSpace& parameters, const GradientSpace& gradients)
    : parameters_(parameters),
      gradients_(gradients),
      first_block_{0},
      squares_(parameters.size(), 0.0) {
  for (const std::size_t elements : parameters.elements())
    first_block_.push_back(first_block_.back() + optim::sum_blocks(elements));
  block_squares_ = torch::zeros({static_cast<std::int64_t>(first_block_.back())}, torch::kFloat64);
}

void GradientNorm::list_blocks(std::size_t parameter) {
  OwnRange range{.count = parameters_.at(parameter).elements()};
  if (parameters_.is_sharded()) range = parameters_.shards().own(parameter);
  for (std::size_t first = range.first; first < range.end(); first += optim::kSumBlock)
    blocks_.push_back({.parameter = parameter, .first_element = first});
}

void GradientNorm::add_bucket(std::size_t bucket) {
  blocks_.clear();
  for (const std::size_t parameter : gradients_.plan().buckets.at(bucket).parameters)
    list_blocks(parameter);
  double* squares = block_squares_.mutable_data_ptr<double>();
  at::parallel_for(0, static_cast<std::int64_t>(blocks_.size()), 4, [&](auto begin, auto end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Block& block = blocks_[i];
      squares[first_block_[block.parameter] + block.first_element / optim::kSumBlock] =
          block_square(gradients_.view(block.parameter), gradients_.dtype(), block.first_element);
    }
  });
}

void GradientNorm::complete() {
  if (parameters_.is_sharded()) parameters_.shards().merge(block_squares_);
  const double* squares = block_squares_.const_data_ptr<double>();
  for (std::size_t i = 0; i < squares_.size(); ++i) {
    squares_[i] = 0;
    for (std::size_t b = first_block_[i]; b < first_block_[i + 1]; ++b) squares_[i] += squares[b];
  }
  if (parameters_.is_sharded()) block_squares_.zero_();
}

double GradientNorm::norm() const {
  double sum = 0;
  for (const double square : squares_) sum += square;
  return std::sqrt(sum);
}

}  // namespace sidestream::parallel
