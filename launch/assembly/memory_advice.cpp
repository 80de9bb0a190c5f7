#include "launch/assembly/memory_advice.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

using model::Recompute;

// The cheapest first.
constexpr std::array kLevels = {
    std::pair{Recompute::kActivations, "activations"}, std::pair{Recompute::kMlp, "mlp"},
    std::pair{Recompute::kAttention, "attention"}, std::pair{Recompute::kBlocks, "blocks"}};

std::int64_t needed_bytes(const TrainOptions& options, const HostMemory& host) {
  const auto activations = static_cast<std::int64_t>(activations_of(options).peak());
  return host.ranks * (host.fixed_bytes + activations) + host.copied_bytes;
}

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

struct Proposal {
  std::string flags;
  std::int64_t bytes = 0;
};

// Each with what the one before has: the last is all that can be done.
std::vector<Proposal> proposals(TrainOptions options, const HostMemory& host) {
  std::vector<Proposal> found;
  std::string chunks;
  model::ModelConfig& config = options.model.config;
  if (config.loss_chunks != 0) {
    config.loss_chunks = 0;
    chunks = "--loss-chunks auto";
    found.push_back({chunks, needed_bytes(options, host)});
  }
  if (config.family != "gpt2") return found;
  for (const auto& [level, name] : kLevels) {
    if (level <= options.model.config.recompute) continue;
    config.recompute = level;
    found.push_back({fmt::format("{}{}--recompute {}", chunks, chunks.empty() ? "" : " ", name),
                     needed_bytes(options, host)});
  }
  return found;
}

}  // namespace

model::ActivationMemory activations_of(const TrainOptions& options) {
  const bool narrow =
      options.precision == Precision::kBf16 || options.precision == Precision::kFp16;
  return model::activation_memory(options.model.config,
                                  {.batch = options.data.batch_size_per_rank,
                                   .sequence_length = sequence_length(options),
                                   .element_bytes = narrow ? 2 : 4,
                                   .on_cpu = options.device != Device::kCuda});
}

std::string memory_advice(const TrainOptions& options, const HostMemory& host) {
  const std::int64_t needed = needed_bytes(options, host);
  if (!host.usable_bytes || needed <= *host.usable_bytes) return {};
  std::string text =
      fmt::format("Memory: this machine has {} free for {} rank(s), and they need about {}: ",
                  gib(*host.usable_bytes), host.ranks, gib(needed));
  const std::vector<Proposal> all = proposals(options, host);
  for (const Proposal& one : all) {
    if (one.bytes > *host.usable_bytes) continue;
    return text + fmt::format("{} makes it about {}.\n", one.flags, gib(one.bytes));
  }
  if (!all.empty())
    text += fmt::format("{} leaves about {}; ", all.back().flags, gib(all.back().bytes));
  return text +
         "take a smaller --batch-size-per-rank with more --grad-accumulation, a shorter "
         "--sequence-length, or fewer ranks.\n";
}

}  // namespace sidestream::launch
