// The smallest model that learns something: embedding, residual blocks of norm and MLP on each
// position alone, tied head. Predicts a token from the one before it. For tests, and to see the
// trainer without attention.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "model/language_model.hpp"
#include "model/modules.hpp"
#include "model/operators.hpp"
#include "model/waiting_operators.hpp"

namespace sidestream::model {

class MlpLanguageModel : public LanguageModel {
 public:
  explicit MlpLanguageModel(const ModelConfig& config);

  torch::Tensor loss(const torch::Tensor& inputs_bt, const torch::Tensor& targets_bt) override;
  torch::Tensor next_token_logits(const torch::Tensor& inputs_bt) override;
  void write_gradients_into(GradientMemory memory) override {
    operators_->write_gradients_into(std::move(memory));
  }
  void wait_for_weights(WeightArrival arrival) override {
    operators_ = std::make_unique<WaitingOperators>(std::move(operators_), std::move(arrival));
  }
  void expect_loss_scale(const torch::Tensor& scale) override { loss_scale_ = scale; }
  const ModelConfig& config() const override { return config_; }
  void initialise(std::uint64_t seed) override;

 private:
  struct Block : torch::nn::Module {
    explicit Block(std::int64_t width);
    std::shared_ptr<LayerNorm> ln_1;
    std::shared_ptr<Mlp> mlp;
  };
  struct Transformer : torch::nn::Module {
    explicit Transformer(const ModelConfig& config);
    std::shared_ptr<Embedding> wte;
    std::vector<std::shared_ptr<Block>> blocks;
    std::shared_ptr<LayerNorm> ln_f;
  };

  torch::Tensor hidden(const torch::Tensor& inputs_bt, const Embeddings& embeddings);

  ModelConfig config_;
  std::unique_ptr<Operators> operators_;
  torch::Tensor loss_scale_;
  std::shared_ptr<Transformer> transformer_;
};

}  // namespace sidestream::model
