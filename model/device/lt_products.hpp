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

// cuBLAS documentation, cublasLtEpilogue_t. A bias has an element for each row of out.
enum class LtEpilogue {
  kNone,
  kBias,         // BIAS: out = first second + bias
  kGeluOfBias,   // GELU_AUX_BIAS: before = first second + bias; out = GELU of it
  kThroughGelu,  // DGELU_BGRAD: out = first second times GELU's derivative at before; bias = its
                 // sums over columns
  kSumsOfFirst,  // BGRADA: bias = sums over the columns of first, as it goes into the product
};

struct LtProduct {
  LtOperand first, second;
  LtMatrix out;
  bool added = false;  // to what is in out
  LtEpilogue epilogue = LtEpilogue::kNone;
  void* bias = nullptr;
  LtMatrix before = {};  // as large as out
};

class LtProducts : public Products {
 public:
  void multiply(const torch::Tensor& left, const torch::Tensor& right,
                const torch::Tensor& out) const override;
  void add(const torch::Tensor& left, const torch::Tensor& right,
           const torch::Tensor& sum) const override;
  void with_bias(const torch::Tensor& x_rc, const torch::Tensor& weight_ch,
                 const torch::Tensor& bias_h, const torch::Tensor& out_rh) const override;
  void with_gelu(const torch::Tensor& x_rc, const torch::Tensor& weight_ch,
                 const torch::Tensor& bias_h, const torch::Tensor& before_rh,
                 const torch::Tensor& activation_rh) const override;
  void through_gelu(const torch::Tensor& dy_rc, const torch::Tensor& weight_hc,
                    const torch::Tensor& before_rh, const torch::Tensor& grad_rh,
                    const torch::Tensor& bias_grad_h) const override;
  void weight_gradient(const torch::Tensor& x_rc, const torch::Tensor& dy_rh,
                       const torch::Tensor& weight_grad_ch,
                       const torch::Tensor& bias_grad_h) const override;

 private:
  // out: the tensor that product.out lies in.
  virtual void run(const LtProduct& product, const torch::Tensor& out) const = 0;
};

}  // namespace sidestream::model::device
