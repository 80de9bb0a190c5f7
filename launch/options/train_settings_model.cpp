// Data and model.
#include "launch/options/train_settings.hpp"

namespace sidestream::launch::detail {
namespace {

using Options = TrainOptions;

// A preset replaces all sizes; the flags after it override single ones.
Setting<Options> model_preset() {
  return {
      {"model", "PRESET",
       "gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1558m, gpt2-mini (11M), gpt2-tiny, gpt2-micro, mlp"},
      [](Options& options, const std::string& text) {
        const model::ModelConfig before = options.model.config;
        options.model.config = model::preset(text);
        options.model.config.fused_ops = before.fused_ops;
        options.model.config.packed_attention = before.packed_attention;
        options.model.config.tune_products = before.tune_products;
        options.model.config.loss_chunks = before.loss_chunks;
        options.model.config.recompute = before.recompute;
        options.model.config.residuals = before.residuals;
        options.model.preset = text;
      },
      [](const Options& options) { return std::optional(options.model.preset); }};
}

Setting<Options> vocab_size() {
  return {{"vocab-size", "N", "tokens that the model knows", "of the data's tokenizer"},
          [](Options& options, const std::string& text) {
            options.model.config.vocab_size = parse_integer(text, {1, std::int64_t{1} << 31});
            options.model.vocab_size_given = true;
          },
          [](const Options& options) -> std::optional<std::string> {
            if (!options.model.vocab_size_given) return std::nullopt;
            return std::to_string(options.model.config.vocab_size);
          }};
}

// 0 inside means the model's context; a file says nothing then.
Setting<Options> sequence_length() {
  return {{"sequence-length", "TOKENS", "tokens of a sample", "the model's context"},
          [](Options& options, const std::string& text) {
            options.data.sequence_length = parse_integer(text, {1, std::int64_t{1} << 24});
          },
          [](const Options& options) -> std::optional<std::string> {
            if (options.data.sequence_length == 0) return std::nullopt;
            return std::to_string(options.data.sequence_length);
          }};
}

}  // namespace

SettingGroup<TrainOptions> data_settings() {
  return {
      "Data",
      {text<Options>(
           {"data", "FOLDER|synthetic",
            "folder with token shards (train and val in their names), or "
            "made-up tokens that take reading out of the picture"},
           [](auto& o) -> auto& { return o.data.source; }),
       text<Options>(
           {"tokenizer", "bytes|PATH", "tokenizer.json of the data", "the data folder's own"},
           [](auto& o) -> auto& { return o.data.tokenizer; }),
       sequence_length(),
       count<Options>({"batch-size-per-rank", "SAMPLES", "samples of a rank in one micro-step"},
                      [](auto& o) -> auto& { return o.data.batch_size_per_rank; }, {1, 1 << 20}),
       on_off<Options>(
           {"shuffle", "on|off", "another order of samples in every epoch"},
           [](auto& o) -> auto& { return o.data.shuffle; }),
       on_off<Options>(
           {"fix-batch", "on|off", "the first batch again and again"},
           [](auto& o) -> auto& { return o.data.fix_batch; })}};
}

SettingGroup<TrainOptions> model_settings() {
  constexpr const char* kPreset = "the preset's";
  return {
      "Model",
      {model_preset(),
       count<Options>({"layers", "N", "transformer blocks", kPreset},
                      [](auto& o) -> auto& { return o.model.config.layers; }, {1, 10'000}),
       count<Options>({"heads", "N", "attention heads; has to divide the width", kPreset},
                      [](auto& o) -> auto& { return o.model.config.heads; }, {1, 10'000}),
       count<Options>({"width", "N", "elements of a token's vector", kPreset},
                      [](auto& o) -> auto& { return o.model.config.width; }, {1, 1 << 20}),
       vocab_size(),
       count<Options>({"pad-vocab", "MULTIPLE",
                       "round the rows of the embedding up to a multiple; 64 or 128 is "
                       "faster on most devices"},
                      [](auto& o) -> auto& { return o.model.pad_vocab; }, {1, 65536}),
       number<Options>(
           {"dropout", "P", "probability of a zero after embedding, attention and blocks", kPreset},
           [](auto& o) -> auto& { return o.model.config.dropout; },
           {.min = 0, .max = 1, .max_bound = Bound::kExcluded}),
       text<Options>(
           {"init", "FOLDER",
            "start from the weights of this checkpoint, or of the newest one of this run directory",
            "random weights"},
           [](auto& o) -> auto& { return o.model.init; })}};
}

}  // namespace sidestream::launch::detail
