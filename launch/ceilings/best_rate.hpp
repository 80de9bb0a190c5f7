// What a measurement of products and copies is made of, on processors and GPUs alike.
#pragma once

#include <cstdint>
#include <functional>

#include <torch/types.h>

namespace sidestream::launch {

// Work per second of the fastest call in `budget_s`: a ceiling is what was reached once, not an
// average over a busy machine. The first call does not count. `call` returns when its work is done.
double best_rate(double budget_s, double work, const std::function<void()>& call);

struct ProductExtents {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;

  double flops() const {
    return 2 * static_cast<double>(rows) * static_cast<double>(inner) *
           static_cast<double>(columns);
  }
};

// Random factors, and room for what they make.
struct ProductTensors {
  ProductTensors(const ProductExtents& extents, const torch::TensorOptions& options);
  torch::Tensor left, right, result;
};

}  // namespace sidestream::launch
