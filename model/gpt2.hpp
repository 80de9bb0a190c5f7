// GPT-2 (Radford et al. 2019) as Hugging Face's GPT2LMHeadModel: pre-norm blocks, learned
// positions, tied head.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/language_model.hpp"
#include "model/layer_ranges.hpp"
#include "model/modules.hpp"
#include "model/operators.hpp"
#include "model/waiting_operators.hpp"

namespace sidestream::model {

class Gpt2 : public LanguageModel {
 public:
  // config must be valid.
  explicit Gpt2(const ModelConfig& config);

  torch::Tensor loss(const torch::Tensor& inputs_bt, const torch::Tensor& targets_bt) override;
  torch::Tensor next_token_logits(const torch::Tensor& inputs_bt) override;
  void write_gradients_into(GradientMemory memory) override {
    operators_->write_gradients_into(std::move(memory));
  }
  void wait_for_weights(WeightArrival arrival) override {
    operators_ = std::make_unique<WaitingOperators>(std::move(operators_), std::move(arrival));
  }
  void keep_residuals_in(std::shared_ptr<ResidualStore> store) override {
    residuals_ = std::move(store);
  }
  void expect_loss_scale(const torch::Tensor& scale) override { loss_scale_ = scale; }
  const ModelConfig& config() const override { return config_; }
  void initialise(std::uint64_t seed) override;

 private:
  struct Block : torch::nn::Module {
    explicit Block(std::int64_t width);
    std::shared_ptr<LayerNorm> ln_1;
    std::shared_ptr<Attention> attn;
    std::shared_ptr<LayerNorm> ln_2;
    std::shared_ptr<Mlp> mlp;
  };
  struct Transformer : torch::nn::Module {
    explicit Transformer(const ModelConfig& config);
    std::shared_ptr<Embedding> wte, wpe;
    std::vector<std::shared_ptr<Block>> blocks;
    std::shared_ptr<LayerNorm> ln_f;
  };

  // The two addends of what a block hands on: the residual stream after attention, and the MLP's
  // output. The sum is that of the next norm.
  struct Addends {
    torch::Tensor residual_btc, branch_btc;
  };

  torch::Tensor hidden(const torch::Tensor& inputs_bt, const Embeddings& embeddings);
  Addends block(std::size_t layer, const torch::Tensor& residual_btc, const Operand& normed_btc);
  Addends block_body(std::size_t layer, const torch::Tensor& residual_btc,
                     const Operand& normed_btc);
  // From its input alone: what makes the next block's input again makes its own sum again, too, so
  // that nobody but `pass` has to keep it.
  NormedResidual block_from_host(std::size_t layer, const NormedResidual& stream,
                                 const std::shared_ptr<ResidualPass>& pass);
  // The norm at the begin of a layer, or behind the last one.
  const LayerNorm& norm_before(std::size_t layer) const;
  std::shared_ptr<ResidualPass> begin_pass(const torch::Tensor& residual_btc) const;
  torch::Tensor attend(std::size_t layer, const Operand& normed_btc);
  torch::Tensor attention_branch(std::size_t layer, const Operand& normed_btc);
  torch::Tensor feed_forward(std::size_t layer, const Operand& normed_btc);
  torch::Tensor drop(const torch::Tensor& x) const;
  // The normed half of `stream`, which can be made again from the other: that one is kept anyway.
  Operand normed(const NormedResidual& stream, const LayerNorm& norm) const;

  ModelConfig config_;
  LayerPaths paths_;
  std::unique_ptr<Operators> operators_;
  std::shared_ptr<ResidualStore> residuals_;  // null: inputs of blocks stay on the device
  torch::Tensor loss_scale_;
  std::shared_ptr<Transformer> transformer_;
};

}  // namespace sidestream::model
