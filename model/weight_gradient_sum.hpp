// The gradient of the head's weight, as the sum over chunks of rows: in fp32 where the weight is
// narrower and there is more than one chunk, so that the number of chunks costs no digits.
#pragma once

#include <functional>

#include <torch/torch.h>

namespace sidestream::model {

enum class LossChunks { kOne, kSeveral };

class WeightGradientSum {
 public:
  // sum += left right, sum in fp32; what is false does not take such tensors, and LibTorch does.
  using AddProduct = std::function<bool(const torch::Tensor& left, const torch::Tensor& right,
                                        const torch::Tensor& sum)>;

  // memory: like the weight, not initialised, where the sum is to be; undefined: anywhere.
  WeightGradientSum(const torch::Tensor& weight_vc, LossChunks chunks, torch::Tensor memory = {},
                    AddProduct add_product = {});

  // logits_grad_nv^T x_nc on top of what is there, both in the dtype of the weight.
  void add(const torch::Tensor& logits_grad_nv, const torch::Tensor& x_nc);

  // In the dtype of the weight; once, after the last add().
  torch::Tensor take();

 private:
  void add_wide(const torch::Tensor& logits_grad_vn, const torch::Tensor& x_nc);

  at::ScalarType type_;
  bool empty_ = true;
  torch::Tensor memory_, sum_;
  AddProduct add_product_;
};

}  // namespace sidestream::model
