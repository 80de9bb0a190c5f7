// Matrix products in cublasLt's hands instead of LibTorch's: those that do in their epilogue what
// comes before or after them, while the numbers are still in registers, so that no kernel of ours
// reads and writes them once more; and all others, where the fastest of its algorithms is wanted.
//
// Row-major matrices of one 16-bit dtype, contiguous but for plain ones; R rows, C and H their
// widths. Nothing waits for the device, but where algorithms are timed.
#pragma once

#include <memory>

#include <torch/torch.h>

#include "model/operators.hpp"

namespace sidestream::model::device {

enum class Epilogues {
  kBias,  // the sum with a bias alone, as LibTorch has it
  kGelu,  // and GELU and its derivative; beside that the sums for the gradient of its bias
  kAll,   // and in every product for a weight's gradient the sums for the gradient of the bias
};

class Products {
 public:
  virtual ~Products() = default;

  // Whether a product of these can have an epilogue: bfloat16 or float16, C and H multiples of 8,
  // the weight contiguous, both at a multiple of 16 bytes.
  static bool take(const torch::Tensor& x_rc, const torch::Tensor& weight_ch);

  // Whether plain products of these can be had: left and right bfloat16 or float16, each of them
  // row-major or the transposed view of such a matrix; out row-major, of their dtype or, for add(),
  // float32; all begin at multiples of 16 bytes, as do their rows.
  static bool take_plain(const torch::Tensor& left, const torch::Tensor& right,
                         const torch::Tensor& out);

  // out = left right; sum += left right.
  virtual void multiply(const torch::Tensor& left, const torch::Tensor& right,
                        const torch::Tensor& out) const = 0;
  virtual void add(const torch::Tensor& left, const torch::Tensor& right,
                   const torch::Tensor& sum) const = 0;

  // out = x weight + bias.
  virtual void with_bias(const torch::Tensor& x_rc, const torch::Tensor& weight_ch,
                         const torch::Tensor& bias_h, const torch::Tensor& out_rh) const = 0;

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
  std::shared_ptr<const Products> products;
  Epilogues epilogues = Epilogues::kBias;
  bool plain = false;  // those without another epilogue than a bias, too

  // Null where they are not used, or do not take such tensors.
  const Products* for_gelu(const torch::Tensor& x, const LinearWeights& weights) const;
  const Products* for_bias(const torch::Tensor& x, const LinearWeights& weights) const;
  const Products* for_bias_gradient(const torch::Tensor& x, const torch::Tensor& dy,
                                    const torch::Tensor& weight_grad) const;
  const Products* for_plain(const torch::Tensor& left, const torch::Tensor& right,
                            const torch::Tensor& out) const;

 private:
  const Products* taken(const torch::Tensor& x, const LinearWeights& weights) const;
};

// Which of cublasLt's algorithms a product gets. What is timed can differ from run to run, and the
// last bits of a product with it.
enum class Algorithms {
  kFirst,    // what its heuristic names first
  kFastest,  // of what it names, by timing each at the first product of a size
};

// Whether a model is to have any of them.
bool wants_products(const ModelConfig& config);

// On the current stream. Throw core::Error where cublasLt has no such product. Null in a build
// without LibTorch's CUDA.
std::shared_ptr<const Products> make_products(Algorithms algorithms);

}  // namespace sidestream::model::device
