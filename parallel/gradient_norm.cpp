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
    default:
      throw core::Error("The gradient norm knows float32 and bfloat16 only.");
  }
}

}  // namespace

void GradientNorm::add_bucket(std::size_t bucket) {
  squares_.resize(gradients_.plan().offsets.size());
  blocks_.clear();
  for (const std::size_t parameter : gradients_.plan().buckets.at(bucket).parameters) {
    squares_[parameter] = 0;
    const auto elements = static_cast<std::size_t>(gradients_.view(parameter).numel());
    for (std::size_t first = 0; first < elements; first += optim::kSumBlock) {
      blocks_.push_back({.parameter = parameter, .first_element = first});
    }
  }
  block_squares_.resize(blocks_.size());
  at::parallel_for(0, static_cast<std::int64_t>(blocks_.size()), 4, [&](auto begin, auto end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Block& block = blocks_[i];
      block_squares_[i] =
          block_square(gradients_.view(block.parameter), gradients_.dtype(), block.first_element);
    }
  });
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    squares_[blocks_[i].parameter] += block_squares_[i];
}

double GradientNorm::norm() const {
  double sum = 0;
  for (const double square : squares_) sum += square;
  return std::sqrt(sum);
}

}  // namespace sidestream::parallel
