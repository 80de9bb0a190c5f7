// Matrix products that do in their epilogue what comes before or after them, while the numbers are
// still in registers: no kernel of ours then reads and writes them once more.
//
// Row-major matrices, contiguous, of one 16-bit dtype; R rows, C and H their widths. Nothing waits
// for the device.
#pragma once

#include <memory>

#include <torch/torch.h>

namespace sidestream::model::device {

enum class Epilogues {
  kGelu,  // GELU and its derivative; beside that the sums for the gradient of its bias
  kAll,   // and in every product for a weight's gradient the sums for the gradient of the bias
};

class EpilogueProducts {
 public:
  virtual ~EpilogueProducts() = default;

  // Whether a product of these can have it: bfloat16 or float16, C and H multiples of 8, the weight
  // contiguous and at a multiple of 16 bytes.
  static bool take(const torch::Tensor& x_rc, const torch::Tensor& weight_ch);

  // before = x weight + bias, rounded; activation = GELU (tanh form) of it, from what was not
  // rounded yet.
  virtual void with_gelu(const torch::Tensor& x_rc, const torch::Tensor& weight_ch,
                         const torch::Tensor& bias_h, const torch::Tensor& before_rh,
                         const torch::Tensor& activation_rh) const = 0;

  // grad = (dy weight^T) times the derivative of GELU at `before`; bias_grad = its sums over rows.
  virtual void through_gelu(const torch::Tensor& dy_rc, const torch::Tensor& weight_hc,
                            const torch::Tensor& before_rh, const torch::Tensor& grad_rh,
                            const torch::Tensor& bias_grad_h) const = 0;

  // weight_grad = x^T dy; bias_grad = sums of dy over rows.
  virtual void weight_gradient(const torch::Tensor& x_rc, const torch::Tensor& dy_rh,
                               const torch::Tensor& weight_grad_ch,
                               const torch::Tensor& bias_grad_h) const = 0;
};

// What of them is used. products null: nothing.
struct ChosenProducts {
  std::shared_ptr<const EpilogueProducts> products;
  Epilogues epilogues = Epilogues::kGelu;

  // Null where they are not used, or do not take such tensors.
  const EpilogueProducts* for_gelu(const torch::Tensor& x, const torch::Tensor& weight) const;
  const EpilogueProducts* for_bias(const torch::Tensor& x, const torch::Tensor& weight) const;
};

// cublasLt's, on the current stream. Throw core::Error where cublasLt has no such product. Null in
// a build without LibTorch's CUDA.
std::shared_ptr<const EpilogueProducts> make_epilogue_products();

}  // namespace sidestream::model::device
