// The gradient of the head's weight, as the sum over chunks of rows: in fp32 where the weight is
// narrower and there is more than one chunk, so that the number of chunks costs no digits.
#pragma once

#include <functional>

#include <torch/types.h>

namespace sidestream::model {

enum class LossChunks { kOne, kSeveral };

class WeightGradientSum {
 public:
  // left right in the place of what is in sum, or added to it. False: such tensors are not taken,
  // nothing is done, and LibTorch multiplies.
  enum class Existing { kReplaced, kAddedTo };
  using Multiply = std::function<bool(const torch::Tensor& left, const torch::Tensor& right,
                                      const torch::Tensor& sum, Existing existing)>;

  // memory: like the weight, not initialised, where the sum is to be; undefined: anywhere.
  WeightGradientSum(const torch::Tensor& weight_vc, LossChunks chunks, torch::Tensor memory = {},
                    Multiply multiply = {});

  // logits_grad_nv^T x_nc on top of what is there, both in the dtype of the weight.
  void add(const torch::Tensor& logits_grad_nv, const torch::Tensor& x_nc);

  // In the dtype of the weight; once, after the last add().
  torch::Tensor take();

 private:
  void add_by_libtorch(const torch::Tensor& logits_grad_vn, const torch::Tensor& x_nc,
                       Existing existing);

  at::ScalarType type_;
  bool empty_ = true;
  torch::Tensor memory_, sum_;
  Multiply multiply_;
};

}  // namespace sidestream::model
