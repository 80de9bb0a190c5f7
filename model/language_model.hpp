// What the trainer asks of a model that predicts the next token.
//
// Parameter names and shapes are those of Hugging Face's model of the same family, so that a
// checkpoint needs no renaming. The dtype of the parameters decides the precision of the products;
// the loss is always fp32.
#pragma once

#include <cstdint>
#include <memory>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "model/config.hpp"
#include "model/gradient_memory.hpp"
#include "model/residual_store.hpp"
#include "model/waiting_operators.hpp"

namespace sidestream::model {

class LanguageModel : public torch::nn::Module {
 public:
  // inputs_bt, targets_bt: int64 [B, T], T <= context_length. Returns the mean cross-entropy, a
  // scalar in fp32. Targets of -100 (kIgnoredTarget) do not count, nor in what it is divided by.
  virtual torch::Tensor loss(const torch::Tensor& inputs_bt, const torch::Tensor& targets_bt) = 0;

  // inputs_bt: int64 [B, T]. Returns fp32 [B, V] for the last position, V = vocab_size, without
  // gradient.
  virtual torch::Tensor next_token_logits(const torch::Tensor& inputs_bt) = 0;

  // From the next forward on. Values do not depend on it.
  virtual void write_gradients_into(GradientMemory memory) = 0;

  // From the next forward on: `arrival` is called with each parameter before it is read. Values do
  // not depend on it.
  virtual void wait_for_weights(WeightArrival arrival) = 0;

  // For ResidualPlace::kHost; from the next forward on. Values do not depend on it. A family
  // without blocks keeps nothing that could go there.
  virtual void keep_residuals_in(std::shared_ptr<ResidualStore> /*store*/) {}

  // From the next forward on: what loss() will be differentiated with instead of 1, an fp32 scalar
  // where the parameters are (LossOptions::scale). Undefined: 1.
  virtual void expect_loss_scale(const torch::Tensor& /*scale*/) {}

  virtual const ModelConfig& config() const = 0;

  // The published initialisation, a pure function of the seed.
  virtual void initialise(std::uint64_t seed) = 0;
};

// Throws ConfigError for an unknown family. The model is uninitialised.
std::shared_ptr<LanguageModel> make_language_model(const ModelConfig& config);

}  // namespace sidestream::model
