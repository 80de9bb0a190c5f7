#include "launch/assembly/memory_proposals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "launch/assembly/offload_assembly.hpp"
#include "launch/options/offload.hpp"
#include "model/draws_again.hpp"

namespace sidestream::launch {
namespace {

using model::Recompute;

// The cheapest first.
constexpr std::array kLevels = {
    std::pair{Recompute::kActivations, "activations"}, std::pair{Recompute::kMlp, "mlp"},
    std::pair{Recompute::kAttention, "attention"}, std::pair{Recompute::kBlocks, "blocks"}};

class Proposals {
 public:
  Proposals(const TrainOptions& options, const PlanOf& plan_of, const MemoryRoom& room)
      : options_(options), plan_of_(plan_of), room_(room), plan_(plan_of(options)) {
    chunk();
    slice();
    recompute();
    offload_residuals();
    offload_optimizer();
    narrow_state();
    offload_optimizer();  // half of it may find room on the host
    narrow_all();
  }

  std::vector<MemoryProposal> take() { return std::move(found_); }

 private:
  void chunk() {
    if (options_.model.config.loss_chunks == 0) return;
    TrainOptions chunked = options_;
    chunked.model.config.loss_chunks = 0;
    propose(chunked, chunks_, "--loss-chunks auto");
  }

  void slice() {
    using parallel::StateSharing;
    const auto& config = options_.parallel;
    const bool parts =
        config.state_sharing == StateSharing::kOn || config.state_sharing == StateSharing::kSharded;
    if (room_.ranks == 1 || parts || config.optimizer.kernel != parallel::OptimizerKernel::kFused)
      return;
    TrainOptions sliced = options_;
    sliced.parallel.state_sharing = StateSharing::kOn;
    propose(sliced, zero_, "--zero 1");
  }

  void recompute() {
    if (options_.model.config.family != "gpt2") return;
    for (const auto& [level, name] : kLevels) {
      if (level <= options_.model.config.recompute) continue;
      TrainOptions again = options_;
      again.model.config.recompute = level;
      propose(again, level_, fmt::format("--recompute {}", name));
    }
  }

  void offload_residuals() {
    const model::ModelConfig& config = options_.model.config;
    if (room_.memory != MemoryOf::kGpu || config.recompute != Recompute::kBlocks) return;
    if (config.residuals == model::ResidualPlace::kHost) return;
    TrainOptions moved = options_;
    moved.model.config.residuals = model::ResidualPlace::kHost;
    propose_offload(moved);
  }

  void offload_optimizer() {
    using parallel::StateResidence;
    const parallel::OptimizerConfig& optimizer = options_.parallel.optimizer;
    if (room_.memory != MemoryOf::kGpu || optimizer.state_residence == StateResidence::kHost ||
        optimizer.kernel != parallel::OptimizerKernel::kFused)
      return;
    TrainOptions moved = options_;
    moved.parallel.optimizer.state_residence = StateResidence::kHost;
    propose_offload(moved);
  }

  // The run would refuse what its host has no room for.
  void propose_offload(const TrainOptions& moved) {
    const RankPlan plan = plan_of_(moved);
    if (fits_host(
            {.ranks = room_.ranks_on_host,
             .rank_bytes = plan.pinned_bytes(),
             .other_bytes = room_.host_other_bytes + static_cast<std::int64_t>(plan.copied_bytes),
             .usable_bytes = room_.host_usable_bytes}))
      propose(moved, offload_, "--offload " + offload_of(moved).text());
  }

  void narrow_state() {
    if (options_.parallel.optimizer.state_dtype != core::DType::kFloat32) return;
    TrainOptions narrow = options_;
    narrow.parallel.optimizer.state_dtype = core::DType::kBFloat16;
    propose(narrow, state_, "--optimizer-state-dtype bf16");
  }

  void narrow_all() {
    if (options_.precision != Precision::kFp32 && options_.precision != Precision::kTf32) return;
    TrainOptions narrow = options_;
    narrow.precision = Precision::kBf16;
    propose(narrow, precision_, "--precision bf16");
  }

  // Keeps what takes something away, of the start or of training: whichever is less counts once
  // another flag has lowered the other.
  void propose(const TrainOptions& options, std::string& place, const std::string& flag) {
    const RankPlan plan = plan_of_(options);
    const std::int64_t bytes = needed_bytes(plan, room_);
    const bool less = plan.training_bytes() < plan_.training_bytes() ||
                      plan.state.start_bytes < plan_.state.start_bytes;
    if (!less || bytes > needed_bytes(plan_, room_)) return;
    plan_ = plan;
    options_ = options;
    place = flag;
    found_.push_back({flags(), bytes});
  }

  std::string flags() const {
    std::vector<std::string> all;
    for (const std::string* flag : {&chunks_, &zero_, &level_, &offload_, &state_, &precision_}) {
      if (!flag->empty()) all.push_back(*flag);
    }
    if (leaves_graph()) all.push_back("--cuda-graph off");
    return fmt::format("{}", fmt::join(all, " "));
  }

  // The parser refuses these beside one.
  bool leaves_graph() const {
    return options_.cuda_graph && (model::draws_again(options_.model.config) || !offload_.empty());
  }

  TrainOptions options_;
  const PlanOf& plan_of_;
  MemoryRoom room_;
  RankPlan plan_;  // with what has been proposed
  std::string chunks_, zero_, level_, offload_, state_, precision_;
  std::vector<MemoryProposal> found_;
};

}  // namespace

std::vector<MemoryProposal> memory_proposals(const TrainOptions& options, const PlanOf& plan_of,
                                             const MemoryRoom& room) {
  return Proposals(options, plan_of, room).take();
}

}  // namespace sidestream::launch
