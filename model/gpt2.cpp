#include "model/gpt2.hpp"

#include "model/head.hpp"

namespace sidestream::model {

using torch::Tensor;

Gpt2::Block::Block(std::int64_t width)
    : ln_1(register_module("ln_1", std::make_shared<LayerNorm>(width))),
      attn(register_module("attn", std::make_shared<Attention>(width))),
      ln_2(register_module("ln_2", std::make_shared<LayerNorm>(width))),
      mlp(register_module("mlp", std::make_shared<Mlp>(width))) {}

Gpt2::Transformer::Transformer(const ModelConfig& config)
    : wte(register_module("wte",
                          std::make_shared<Embedding>(config.padded_vocab_size, config.width))),
      wpe(register_module("wpe",
                          std::make_shared<Embedding>(config.context_length, config.width))) {
  torch::nn::ModuleList list;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    blocks.push_back(std::make_shared<Block>(config.width));
    list->push_back(blocks.back());
  }
  register_module("h", list);
  ln_f = register_module("ln_f", std::make_shared<LayerNorm>(config.width));
}

Gpt2::Gpt2(const ModelConfig& config)
    : config_(config),
      paths_("transformer.h.", config),
      operators_(make_operators(config.fused_ops)),
      transformer_(register_module("transformer", std::make_shared<Transformer>(config))) {}

void Gpt2::initialise(std::uint64_t seed) {
  initialise_parameters(
      *this,
      {.seed = seed, .residual_branches = 2 * config_.layers, .vocab_size = config_.vocab_size});
}

Tensor Gpt2::loss(const Tensor& inputs_bt, const Tensor& targets_bt) {
  const Embeddings embeddings{.tokens_vc = transformer_->wte->weight,
                              .positions_pc = transformer_->wpe->weight,
                              .tied = c10::make_intrusive<TiedGradient>()};
  return operators_->next_token_loss(
      hidden(inputs_bt, embeddings), embeddings, targets_bt,
      {.vocab_size = config_.vocab_size, .chunks = config_.loss_chunks});
}

Tensor Gpt2::next_token_logits(const Tensor& inputs_bt) {
  const torch::NoGradGuard no_grad;
  const Embeddings embeddings{.tokens_vc = transformer_->wte->weight,
                              .positions_pc = transformer_->wpe->weight,
                              .tied = {}};
  return last_position_logits(hidden(inputs_bt, embeddings), transformer_->wte->weight,
                              config_.vocab_size);
}

Tensor Gpt2::hidden(const Tensor& inputs_bt, const Embeddings& embeddings) {
  check_inputs(inputs_bt, config_);
  Tensor residual = drop(operators_->embed(inputs_bt, embeddings));
  Tensor normed = operators_->norm(residual, weights_of(*transformer_->blocks.front()->ln_1));
  for (std::size_t layer = 0; layer < transformer_->blocks.size(); ++layer) {
    const LayerRange range(paths_.at(layer), &LayerPaths::Names::block);
    const NormWeights middle_norm = weights_of(*transformer_->blocks[layer]->ln_2);
    NormedResidual middle = operators_->add_norm(residual, attend(layer, normed), middle_norm);
    const Tensor branch = feed_forward(layer, middle.normed_btc);
    const bool last = layer + 1 == transformer_->blocks.size();
    const LayerNorm& next_norm =
        last ? *transformer_->ln_f : *transformer_->blocks[layer + 1]->ln_1;
    NormedResidual end = operators_->add_norm(middle.residual_btc, branch, weights_of(next_norm));
    residual = end.residual_btc;
    normed = end.normed_btc;
  }
  return normed;
}

Tensor Gpt2::attend(std::size_t layer, const Tensor& normed_btc) {
  const LayerRange range(paths_.at(layer), &LayerPaths::Names::attention);
  const Block& block = *transformer_->blocks[layer];
  const Tensor qkv = operators_->linear(normed_btc, weights_of(*block.attn->c_attn));
  const double dropout = is_training() ? config_.dropout : 0.0;
  const Tensor mixed = operators_->attention(qkv, {.heads = config_.heads, .dropout = dropout});
  return drop(operators_->linear(mixed, weights_of(*block.attn->c_proj)));
}

Tensor Gpt2::feed_forward(std::size_t layer, const Tensor& normed_btc) {
  const LayerRange range(paths_.at(layer), &LayerPaths::Names::mlp);
  const Mlp& mlp = *transformer_->blocks[layer]->mlp;
  return drop(operators_->mlp(normed_btc, weights_of(*mlp.c_fc), weights_of(*mlp.c_proj)));
}

Tensor Gpt2::drop(const Tensor& x) const {
  return config_.dropout > 0 && is_training() ? at::dropout(x, config_.dropout, true) : x;
}

}  // namespace sidestream::model
