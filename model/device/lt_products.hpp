// Products as cublasLt counts them, columns first: a row-major [R, H] is its H x R matrix, and out
// = left right is asked for as out^T = right^T left^T. No CUDA in this header: tests multiply on
// the processor.
#pragma once

#include <cstdint>

#include "model/device/products.hpp"

namespace sidestream::model::device {

// A column's elements lie side by side, columns are `stride` elements apart.
struct LtMatrix {
  void* memory = nullptr;
  at::ScalarType dtype = at::kBFloat16;
  std::int64_t rows = 0, columns = 0, stride = 0;
};

struct LtOperand {
  LtMatrix matrix;
  bool transposed = false;  // before the product
};

struct LtProduct {
  LtOperand first, second;
  LtMatrix out;
  bool added = false;    // to what is in out
  void* bias = nullptr;  // an element for each row of out, which is added; null: none
};

class LtProducts : public Products {
 public:
  void multiply(const torch::Tensor& left, const torch::Tensor& right,
                const torch::Tensor& out) const override;
  void add(const torch::Tensor& left, const torch::Tensor& right,
           const torch::Tensor& sum) const override;
  void with_bias(const torch::Tensor& x_rc, const torch::Tensor& weight_ch,
                 const torch::Tensor& bias_h, const torch::Tensor& out_rh) const override;

 private:
  // out: the tensor that product.out lies in.
  virtual void run(const LtProduct& product, const torch::Tensor& out) const = 0;
};

}  // namespace sidestream::model::device
