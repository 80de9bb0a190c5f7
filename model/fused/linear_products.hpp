// The products of a linear layer, y = x weight + bias, over flattened rows.
#pragma once

#include <torch/types.h>

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

// A contiguous tensor seen as rows of its last dimension.
template <typename T>
struct Matrix {
  explicit Matrix(const torch::Tensor& tensor)
      : data(data_of<T>(tensor)), columns(tensor.size(-1)), rows(tensor.numel() / columns) {}
  T* data;
  std::int64_t columns, rows;
};

// x's shape with `last` as its last dimension, not initialised.
torch::Tensor empty_rows(const torch::Tensor& x, std::int64_t last);

// dy weight^T -> shape of x.
template <typename T>
torch::Tensor input_gradient(const torch::Tensor& dy, const torch::Tensor& weight);

// x^T dy -> [in, out], in `memory` where it is defined.
template <typename T>
torch::Tensor weight_gradient(const torch::Tensor& x, const torch::Tensor& dy,
                              torch::Tensor memory);

// Sums of columns -> [out], as ColumnSums makes them.
template <typename T>
torch::Tensor bias_gradient(const torch::Tensor& dy);

// fp32 sums as a tensor of the parameter's dtype.
torch::Tensor rounded(const torch::Tensor& sums, at::ScalarType dtype);

// Whether blocks can do a product that contracts `width` elements: bf16 goes in pairs.
inline bool contractible(std::int64_t width) { return width % 2 == 0; }

}  // namespace sidestream::model::fused
