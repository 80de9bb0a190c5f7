// What an operator gives and how it is differentiated, to be compared between implementations.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "model/operators.hpp"

namespace sidestream::model {

using Tensors = std::vector<torch::Tensor>;
using Operation = std::function<Tensors(Operators&, const Tensors&)>;

inline torch::Tensor wide(const torch::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble);
}

// Of the whole tensor: the norm of the difference, over that of what is expected.
inline double relative_error(const torch::Tensor& found, const torch::Tensor& expected) {
  const double norm = wide(expected).norm().item<double>();
  return (wide(found) - wide(expected)).norm().item<double>() / (norm == 0 ? 1 : norm);
}

inline Tensors as_type(const Tensors& tensors, at::ScalarType dtype) {
  Tensors result;
  for (const torch::Tensor& tensor : tensors) result.push_back(tensor.to(dtype));
  return result;
}

struct Outcome {
  Tensors values, gradients;
};

// Differentiates the sum of the outputs, each weighted by fixed random numbers.
inline Outcome run(Operators& operators, const Operation& operation, const Tensors& inputs) {
  Tensors leaves;
  for (const torch::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().requires_grad_());
  Outcome outcome{operation(operators, leaves), {}};
  torch::manual_seed(7);
  torch::Tensor sum = torch::zeros({}, at::kDouble).to(inputs[0].device());
  for (const torch::Tensor& value : outcome.values) {
    const torch::Tensor weights = torch::randn(value.sizes(), at::kDouble).to(value.device());
    sum = sum + (value.to(at::kDouble) * weights).sum();
  }
  sum.backward();
  for (const torch::Tensor& leaf : leaves) outcome.gradients.push_back(leaf.grad());
  return outcome;
}

inline void expect_near(const Outcome& found, const Outcome& expected, double tolerance) {
  ASSERT_EQ(found.values.size(), expected.values.size());
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    EXPECT_LT(relative_error(found.values[i], expected.values[i]), tolerance) << "value " << i;
  }
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    ASSERT_TRUE(found.gradients[i].defined()) << "gradient " << i;
    EXPECT_EQ(found.gradients[i].sizes(), expected.gradients[i].sizes());
    EXPECT_LT(relative_error(found.gradients[i], expected.gradients[i]), tolerance)
        << "gradient " << i;
  }
}

}  // namespace sidestream::model
