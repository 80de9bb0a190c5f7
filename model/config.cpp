#include "model/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"

namespace sidestream::model {
namespace {

struct NamedSize {
  const char* name;
  const char* family;
  std::int64_t layers, heads, width, vocab_size, context_length;
};

// gpt2-124m to gpt2-1558m: Radford et al. 2019, as published by Hugging Face (gpt2, -medium,
// -large, -xl).
constexpr std::array kPresets = {
    NamedSize{"gpt2-124m", "gpt2", 12, 12, 768, 50257, 1024},
    NamedSize{"gpt2-355m", "gpt2", 24, 16, 1024, 50257, 1024},
    NamedSize{"gpt2-774m", "gpt2", 36, 20, 1280, 50257, 1024},
    NamedSize{"gpt2-1558m", "gpt2", 48, 25, 1600, 50257, 1024},
    NamedSize{"gpt2-mini", "gpt2", 6, 6, 384, 512, 256},
    NamedSize{"gpt2-tiny", "gpt2", 4, 4, 128, 512, 128},
    NamedSize{"gpt2-micro", "gpt2", 2, 2, 32, 512, 64},
    NamedSize{"mlp", "mlp", 2, 1, 64, 512, 256},
};

constexpr std::int64_t kMaxSize = std::int64_t{1} << 31;
constexpr double kMostParameters = 1e15;  // their bytes, with gradients and states, can be counted

void check_range(const char* field, std::int64_t value, std::int64_t low) {
  if (value >= low && value < kMaxSize) return;
  throw core::ConfigError(
      fmt::format("model: {} must be in {} .. {}, found {}", field, low, kMaxSize - 1, value));
}

void check_family(const std::string& family) {
  if (family == "gpt2" || family == "mlp") return;
  throw core::ConfigError(fmt::format("model: family must be gpt2 or mlp, found '{}'", family));
}

// In integers, or in floating point where they could be too large for those.
template <typename Number>
Number block_parameter_count(const ModelConfig& config) {
  const auto c = static_cast<Number>(config.width);
  const Number norm = 2 * c;
  const Number mlp = 8 * c * c + 5 * c;
  const Number attention = 4 * c * c + 4 * c;
  return config.family == "mlp" ? norm + mlp : 2 * norm + mlp + attention;
}

template <typename Number>
Number count_parameters(const ModelConfig& config) {
  const auto c = static_cast<Number>(config.width);
  const auto positions = static_cast<Number>(config.family == "mlp" ? 0 : config.context_length);
  const Number final_norm = 2 * c;
  return (static_cast<Number>(config.vocab_size) + positions) * c +
         static_cast<Number>(config.layers) * block_parameter_count<Number>(config) + final_norm;
}

void check_total(const ModelConfig& config) {
  ModelConfig padded = config;
  padded.vocab_size = config.padded_vocab_size;
  const auto count = count_parameters<double>(padded);
  if (count <= kMostParameters) return;
  throw core::ConfigError(
      fmt::format("model: layers, width, padded_vocab_size and context_length must make at most "
                  "{:.2g} parameters, "
                  "found {:.2g}",
                  kMostParameters, count));
}

// What blocks keep, and where.
void check_memory(const ModelConfig& config) {
  const bool offloads = config.residuals == ResidualPlace::kHost;
  if (offloads && config.family != "gpt2") {
    throw core::ConfigError(fmt::format(
        "--offload residuals is for models of GPT-2's blocks, and this one is of the "
        "family '{}': leave residuals out (--loss-chunks saves memory for every family)",
        config.family));
  }
  if (config.recompute != Recompute::kNone && config.family != "gpt2") {
    throw core::ConfigError(
        fmt::format("--recompute is for models of GPT-2's blocks, and this one is of the family "
                    "'{}': use --recompute none (--loss-chunks saves memory for every family)",
                    config.family));
  }
  if (offloads && config.recompute != Recompute::kBlocks) {
    throw core::ConfigError(
        "--offload residuals needs --recompute blocks: at every other level a block keeps several "
        "times as much inside as its input, and that stays on the GPU");
  }
}

void check_products(const ModelConfig& config) {
  if (config.tune_products && config.fused_ops == FusedOps::kOff)
    throw core::ConfigError("--tune-products on needs --fused-ops on");
}

void check_attention(const ModelConfig& config) {
  if (!config.packed_attention) return;
  if (config.fused_ops == FusedOps::kOff)
    throw core::ConfigError("--packed-attention on needs --fused-ops on");
  if (const std::string objection = objection_to_packed_attention(config); !objection.empty())
    throw core::ConfigError(objection);
}

}  // namespace

void ModelConfig::validate() const {
  check_family(family);
  check_range("layers", layers, 1);
  check_range("heads", heads, 1);
  check_range("width", width, 1);
  check_range("vocab_size", vocab_size, 1);
  check_range("padded_vocab_size", padded_vocab_size, vocab_size);
  check_range("context_length", context_length, 1);
  if (width % heads != 0) {
    throw core::ConfigError(
        fmt::format("model: width must be a multiple of heads, found {} and {}", width, heads));
  }
  if (!(dropout >= 0.0 && dropout < 1.0)) {
    throw core::ConfigError(fmt::format("model: dropout must be in [0, 1), found {}", dropout));
  }
  if (family == "mlp" && dropout > 0)
    throw core::ConfigError(fmt::format(
        "--dropout {}: models of the family 'mlp' drop nothing out: leave it out", dropout));
  check_products(*this);
  check_attention(*this);
  check_memory(*this);
  check_total(*this);
}

std::string objection_to_packed_attention(const ModelConfig& config) {
  if (config.family == "mlp")
    return "--packed-attention on: models of the family 'mlp' have no attention: leave it out";
  if (config.dropout > 0)
    return fmt::format(
        "--packed-attention on and --dropout {} exclude each other: it draws nothing; take "
        "--dropout 0, or leave --packed-attention out",
        config.dropout);
  const std::int64_t head_width = config.width / config.heads;
  if (fits_packed_attention(head_width)) return {};
  return fmt::format(
      "--packed-attention on needs heads of a multiple of {} channels, {} at most, found {} ({} "
      "channels, {} heads): leave it out",
      kPackedHeadWidth, kMostPackedHeadWidth, head_width, config.width, config.heads);
}

ModelConfig preset(const std::string& name) {
  for (const NamedSize& size : kPresets) {
    if (name != size.name) continue;
    return {.family = size.family,
            .layers = size.layers,
            .heads = size.heads,
            .width = size.width,
            .vocab_size = size.vocab_size,
            .padded_vocab_size = size.vocab_size,
            .context_length = size.context_length};
  }
  std::string known;
  for (const std::string& other : preset_names()) known += " " + other;
  throw core::ConfigError(fmt::format("no preset '{}'; there are{}", name, known));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const NamedSize& size : kPresets) names.emplace_back(size.name);
  return names;
}

std::int64_t offloaded_blocks(const ModelConfig& config) {
  return std::max<std::int64_t>(0, config.layers - 2);
}

std::int64_t parameter_count(const ModelConfig& config) {
  return count_parameters<std::int64_t>(config);
}

FlopsPerToken flops_per_token(const ModelConfig& config, std::int64_t sequence_length) {
  const double products = 6.0 * static_cast<double>(parameter_count(config));
  if (config.family == "mlp") return {.causal = products, .palm = products};
  const double pairs = static_cast<double>(config.layers) * static_cast<double>(config.width) *
                       static_cast<double>(sequence_length);
  return {.causal = products + 6.0 * pairs, .palm = products + 12.0 * pairs};
}

}  // namespace sidestream::model
