#include "launch/assembly/memory_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "launch/options/offload.hpp"
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
  return std::max(host.ranks * (host.fixed_bytes + activations) + host.copied_bytes,
                  host.ranks * host.start_bytes);
}

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

struct Proposal {
  std::string flags;
  std::int64_t bytes = 0;
};

// Each with what the one before has: the last is all that can be done.
class Proposals {
 public:
  Proposals(const TrainOptions& options, const HostMemory& host) : options_(options), host_(host) {
    chunk();
    if (config().family == "gpt2") recompute();
    if (host.memory == MemoryOf::kGpu) offload();
  }

  const std::vector<Proposal>& all() const { return found_; }

 private:
  model::ModelConfig& config() { return options_.model.config; }

  void chunk() {
    if (config().loss_chunks == 0) return;
    config().loss_chunks = 0;
    chunks_ = "--loss-chunks auto";
    propose();
  }

  void recompute() {
    for (const auto& [level, name] : kLevels) {
      if (level <= config().recompute) continue;
      config().recompute = level;
      level_ = fmt::format("--recompute {}", name);
      propose();
    }
  }

  void offload() {
    Offload offload = offload_of(options_);
    if (!offload.residuals && config().recompute == Recompute::kBlocks) {
      offload.residuals = true;
      config().residuals = model::ResidualPlace::kHost;
      offload_ = "--offload " + offload.text();
      propose();
    }
    if (offload.optimizer || host_.offloaded_bytes == 0) return;
    offload.optimizer = true;
    host_.fixed_bytes -= host_.offloaded_bytes;
    offload_ = "--offload " + offload.text();
    propose();
  }

  void propose() {
    std::vector<std::string> flags;
    for (const std::string* flag : {&chunks_, &level_, &offload_}) {
      if (!flag->empty()) flags.push_back(*flag);
    }
    if (leaves_graph()) flags.push_back("--cuda-graph off");
    found_.push_back({fmt::format("{}", fmt::join(flags, " ")), needed_bytes(options_, host_)});
  }

  // The parser refuses these beside one.
  bool leaves_graph() const {
    const bool draws_again = !level_.empty() && options_.model.config.dropout > 0;
    return options_.cuda_graph && (draws_again || !offload_.empty());
  }

  TrainOptions options_;
  HostMemory host_;
  std::string chunks_, level_, offload_;
  std::vector<Proposal> found_;
};

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
      fmt::format("Memory: this {} has {} free for {} rank(s), and they need about {}: ",
                  host.memory == MemoryOf::kGpu ? "GPU" : "machine", gib(*host.usable_bytes),
                  host.ranks, gib(needed));
  const Proposals proposals(options, host);
  const std::vector<Proposal>& all = proposals.all();
  for (const Proposal& one : all) {
    if (one.bytes > *host.usable_bytes) continue;
    return text + fmt::format("{} makes it about {}.", one.flags, gib(one.bytes));
  }
  if (!all.empty())
    text += fmt::format("{} leaves about {}; ", all.back().flags, gib(all.back().bytes));
  return text +
         "take a smaller --batch-size-per-rank with more --grad-accumulation, a shorter "
         "--sequence-length, or fewer ranks.";
}

}  // namespace sidestream::launch
