#include "model/mlp_language_model.hpp"

#include <torch/nn/modules/container/modulelist.h>

#include "model/head.hpp"

namespace sidestream::model {

using torch::Tensor;

MlpLanguageModel::Block::Block(std::int64_t width)
    : ln_1(register_module("ln_1", std::make_shared<LayerNorm>(width))),
      mlp(register_module("mlp", std::make_shared<Mlp>(width))) {}

MlpLanguageModel::Transformer::Transformer(const ModelConfig& config)
    : wte(register_module("wte",
                          std::make_shared<Embedding>(config.padded_vocab_size, config.width))) {
  torch::nn::ModuleList list;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    blocks.push_back(std::make_shared<Block>(config.width));
    list->push_back(blocks.back());
  }
  register_module("h", list);
  ln_f = register_module("ln_f", std::make_shared<LayerNorm>(config.width));
}

MlpLanguageModel::MlpLanguageModel(const ModelConfig& config)
    : config_(config),
      operators_(make_operators(config)),
      transformer_(register_module("transformer", std::make_shared<Transformer>(config))) {}

void MlpLanguageModel::initialise(std::uint64_t seed) {
  initialise_parameters(
      *this, {.seed = seed, .residual_branches = config_.layers, .vocab_size = config_.vocab_size});
}

Tensor MlpLanguageModel::loss(const Tensor& inputs_bt, const Tensor& targets_bt) {
  const Embeddings embeddings{.tokens_vc = transformer_->wte->weight,
                              .positions_pc = {},
                              .tied = c10::make_intrusive<TiedGradient>()};
  return operators_->next_token_loss(
      hidden(inputs_bt, embeddings), embeddings, targets_bt,
      {.vocab_size = config_.vocab_size, .chunks = config_.loss_chunks, .scale = loss_scale_});
}

Tensor MlpLanguageModel::next_token_logits(const Tensor& inputs_bt) {
  const torch::NoGradGuard no_grad;
  const Embeddings embeddings{
      .tokens_vc = transformer_->wte->weight, .positions_pc = {}, .tied = {}};
  return last_position_logits(hidden(inputs_bt, embeddings), transformer_->wte->weight,
                              config_.vocab_size);
}

Tensor MlpLanguageModel::hidden(const Tensor& inputs_bt, const Embeddings& embeddings) {
  check_inputs(inputs_bt, config_);
  Tensor residual = operators_->embed(inputs_bt, embeddings);
  Tensor normed = operators_->norm(residual, weights_of(*transformer_->blocks.front()->ln_1));
  for (std::size_t layer = 0; layer < transformer_->blocks.size(); ++layer) {
    const Mlp& mlp = *transformer_->blocks[layer]->mlp;
    const Tensor branch =
        operators_->mlp(normed, weights_of(*mlp.c_fc), weights_of(*mlp.c_proj), MlpKeeps::kAll);
    const bool last = layer + 1 == transformer_->blocks.size();
    const LayerNorm& next_norm =
        last ? *transformer_->ln_f : *transformer_->blocks[layer + 1]->ln_1;
    NormedResidual end = operators_->add_norm(residual, branch, weights_of(next_norm));
    residual = end.residual_btc;
    normed = end.normed_btc;
  }
  return normed;
}

}  // namespace sidestream::model
