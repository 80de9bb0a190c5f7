// Matrix products in cublasLt's hands instead of LibTorch's, which asks it for the algorithm that
// it holds for the fastest: here each gets the one that is. (Tried: GELU and its derivative in the
// epilogues of the products beside them, and the sums for biases. On an H200 those products were
// slower by as much as our kernels take, or more: tests/bench/tried_gpu.md.)
//
// Row-major matrices of one 16-bit dtype, contiguous but for plain ones; R rows, C and H their
// widths. Nothing waits for the device, but where algorithms are timed.
#pragma once

#include <memory>

#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::device {

class Products {
 public:
  virtual ~Products() = default;

  // Whether a product of these can have a bias: bfloat16 or float16, C and H multiples of 8, the
  // weight contiguous, all three at multiples of 16 bytes.
  static bool take_with_bias(const torch::Tensor& x_rc, const LinearWeights& weights);

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
};

// On the current stream. The first product of a size times cublasLt's algorithms, but inside of a
// captured graph; what is the fastest can differ from run to run, and the last bits of a product
// with it. Throw core::Error where cublasLt has no such product. Null in a build without LibTorch's
// CUDA.
std::shared_ptr<const Products> make_products();

}  // namespace sidestream::model::device
