// Fused CPU operators in fp32 and bf16; other dtypes, devices and shapes go to the plain ones. A
// processor without units for bf16 multiplies in fp32, on the same numbers: LibTorch's products of
// bf16 are two hundred times slower there.
#pragma once

#include "model/plain_operators.hpp"

namespace sidestream::model::fused {

// Types that a processor multiplies in blocks.
struct ProductTypes {
  bool fp32 = false;
  bool bf16 = false;
};

class FusedOperators : public Operators {
 public:
  FusedOperators();  // for this processor
  explicit FusedOperators(const ProductTypes& products) : products_(products) {}

  torch::Tensor embed(const torch::Tensor& tokens_bt, const Embeddings& embeddings) override;
  torch::Tensor norm(const torch::Tensor& x_btc, const NormWeights& norm) override;
  NormedResidual add_norm(const torch::Tensor& residual_btc, const torch::Tensor& branch_btc,
                          const NormWeights& norm) override;
  torch::Tensor linear(const torch::Tensor& x, const LinearWeights& weights) override;
  torch::Tensor mlp(const torch::Tensor& x_btc, const LinearWeights& in,
                    const LinearWeights& out) override;
  torch::Tensor attention(const torch::Tensor& qkv_bt3c, const AttentionOptions& options) override;
  torch::Tensor next_token_loss(const torch::Tensor& x_btc, const Embeddings& embeddings,
                                const torch::Tensor& targets_bt,
                                const LossOptions& options) override;

 private:
  bool has_kernels(const torch::Tensor& x) const;   // loops over rows
  bool has_products(const torch::Tensor& x) const;  // block products as well
  bool is_widened(const torch::Tensor& x) const;    // products are made in fp32

  PlainOperators plain_;
  ProductTypes products_;
};

}  // namespace sidestream::model::fused
