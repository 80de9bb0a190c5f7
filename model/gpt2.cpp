#include "model/gpt2.hpp"

#include <optional>

#include <torch/nn/modules/container/modulelist.h>

#include "core/base/error.hpp"
#include "model/draws_again.hpp"
#include "model/head.hpp"
#include "model/recompute.hpp"

namespace sidestream::model {

using torch::Tensor;

namespace {

MlpKeeps kept_of_mlp(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone:
    case Recompute::kBlocks:  // while a block runs again, nothing in it does so twice
      return MlpKeeps::kAll;
    case Recompute::kActivations:
      return MlpKeeps::kBeforeGelu;
    case Recompute::kMlp:
    case Recompute::kAttention:
      return MlpKeeps::kInput;
  }
  throw core::Error("model: an unknown level of recomputation");
}

Draws draws_of(const ModelConfig& config) {
  return draws_again(config) ? Draws::kSome : Draws::kNone;
}

}  // namespace

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
      operators_(make_operators(config)),
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
      {.vocab_size = config_.vocab_size, .chunks = config_.loss_chunks, .scale = loss_scale_});
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
  NormedResidual stream{.residual_btc = drop(operators_->embed(inputs_bt, embeddings)),
                        .normed_btc = {}};
  const auto pass = begin_pass(stream.residual_btc);
  stream.normed_btc = operators_->norm(stream.residual_btc, weights_of(norm_before(0)));
  for (std::size_t layer = 0; layer < transformer_->blocks.size(); ++layer) {
    const LayerRange range(paths_.at(layer), &LayerPaths::Names::block);
    if (pass) {
      stream = block_from_host(layer, stream, pass);
      continue;
    }
    const Addends end = block(layer, stream.residual_btc, normed(stream, norm_before(layer)));
    stream =
        operators_->add_norm(end.residual_btc, end.branch_btc, weights_of(norm_before(layer + 1)));
  }
  if (pass) pass->end_forward();
  return stream.normed_btc;
}

const LayerNorm& Gpt2::norm_before(std::size_t layer) const {
  return layer == transformer_->blocks.size() ? *transformer_->ln_f
                                              : *transformer_->blocks[layer]->ln_1;
}

// Null where nothing is kept for a backward, or nothing of it goes to the host.
std::shared_ptr<ResidualPass> Gpt2::begin_pass(const Tensor& residual_btc) const {
  const bool differentiates = at::GradMode::is_enabled() && residual_btc.requires_grad();
  return residuals_ && differentiates ? residuals_->begin() : nullptr;
}

// The last block's input is wanted first of all, and the first one's is kept by its norm anyway:
// both stay.
NormedResidual Gpt2::block_from_host(std::size_t layer, const NormedResidual& stream,
                                     const std::shared_ptr<ResidualPass>& pass) {
  const Computation computation = [this, layer](const std::vector<Tensor>& inputs, Pass which) {
    std::optional<LayerRange> range;
    if (which == Pass::kAgain) range.emplace(paths_.at(layer), &LayerPaths::Names::block);
    const Addends end = block_body(layer, inputs[0], inputs[1]);
    const NormedResidual next =
        operators_->add_norm(end.residual_btc, end.branch_btc, weights_of(norm_before(layer + 1)));
    return std::vector<Tensor>{next.residual_btc, next.normed_btc};
  };
  const bool last = layer + 1 == transformer_->blocks.size();
  MadeAgain residual;
  if (layer > 0 && !last) residual = pass->keep(stream.residual_btc);
  const auto make =
      residual.make ? residual.make : [pass, last, kept = stream.residual_btc.detach()] {
        if (last) pass->begin_backward();
        return kept;
      };
  const Operand normed{stream.normed_btc, {[this, layer, make] {
                         return operators_->norm(make(), weights_of(norm_before(layer)));
                       }}};
  const std::vector<Tensor> out = recompute_in_backward(
      computation, {Operand(stream.residual_btc, residual), normed}, draws_of(config_));
  return {.residual_btc = out[0], .normed_btc = out[1]};
}

Gpt2::Addends Gpt2::block(std::size_t layer, const Tensor& residual_btc,
                          const Operand& normed_btc) {
  if (config_.recompute != Recompute::kBlocks) return block_body(layer, residual_btc, normed_btc);
  const Computation computation = [this, layer](const std::vector<Tensor>& inputs, Pass pass) {
    // Forward is in the block's range already.
    std::optional<LayerRange> range;
    if (pass == Pass::kAgain) range.emplace(paths_.at(layer), &LayerPaths::Names::block);
    const Addends end = block_body(layer, inputs[0], inputs[1]);
    return std::vector<Tensor>{end.residual_btc, end.branch_btc};
  };
  const std::vector<Tensor> out =
      recompute_in_backward(computation, {residual_btc, normed_btc}, draws_of(config_));
  return {.residual_btc = out[0], .branch_btc = out[1]};
}

Gpt2::Addends Gpt2::block_body(std::size_t layer, const Tensor& residual_btc,
                               const Operand& normed_btc) {
  // A block that runs again as a whole keeps what it needs for the moment.
  const bool whole = config_.recompute == Recompute::kBlocks;
  const LayerNorm& norm = *transformer_->blocks[layer]->ln_2;
  const NormedResidual middle =
      operators_->add_norm(residual_btc, attend(layer, normed_btc), weights_of(norm));
  return {
      .residual_btc = middle.residual_btc,
      .branch_btc = feed_forward(layer, whole ? Operand(middle.normed_btc) : normed(middle, norm))};
}

Tensor Gpt2::attend(std::size_t layer, const Operand& normed_btc) {
  if (config_.recompute != Recompute::kAttention) return attention_branch(layer, normed_btc);
  const Computation computation = [this, layer](const std::vector<Tensor>& inputs, Pass /*pass*/) {
    return std::vector<Tensor>{attention_branch(layer, inputs[0])};
  };
  return recompute_in_backward(computation, {normed_btc}, draws_of(config_)).front();
}

Tensor Gpt2::attention_branch(std::size_t layer, const Operand& normed_btc) {
  const LayerRange range(paths_.at(layer), &LayerPaths::Names::attention);
  const Block& block = *transformer_->blocks[layer];
  const Tensor qkv = operators_->linear(normed_btc, weights_of(*block.attn->c_attn));
  const double dropout = is_training() ? config_.dropout : 0.0;
  const Tensor mixed = operators_->attention(qkv, {.heads = config_.heads, .dropout = dropout});
  return drop(operators_->linear(mixed, weights_of(*block.attn->c_proj)));
}

Tensor Gpt2::feed_forward(std::size_t layer, const Operand& normed_btc) {
  const LayerRange range(paths_.at(layer), &LayerPaths::Names::mlp);
  const Mlp& mlp = *transformer_->blocks[layer]->mlp;
  return drop(operators_->mlp(normed_btc, weights_of(*mlp.c_fc), weights_of(*mlp.c_proj),
                              kept_of_mlp(config_.recompute)));
}

Operand Gpt2::normed(const NormedResidual& stream, const LayerNorm& norm) const {
  if (config_.recompute == Recompute::kNone) return stream.normed_btc;
  return {stream.normed_btc,
          {[this, sum_btc = stream.residual_btc.detach(), weights = weights_of(norm)] {
            return operators_->norm(sum_btc, weights);
          }}};
}

Tensor Gpt2::drop(const Tensor& x) const {
  return config_.dropout > 0 && is_training() ? at::dropout(x, config_.dropout, true) : x;
}

}  // namespace sidestream::model
