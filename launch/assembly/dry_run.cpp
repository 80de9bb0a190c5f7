#include "launch/assembly/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/memory_advice.hpp"
#include "launch/assembly/offload_assembly.hpp"
#include "launch/options/offload.hpp"
#include "launch/options/train_parser.hpp"
#include "model/activation_memory.hpp"
#include "model/language_model.hpp"
#include "parallel/memory_plan.hpp"

namespace sidestream::launch {
namespace {

// The module's memory is reserved but never touched: even the largest preset costs nothing here.
std::vector<parallel::ParameterShape> shapes_of(const model::ModelConfig& config) {
  std::vector<parallel::ParameterShape> shapes;
  for (const auto& parameter : model::make_language_model(config)->named_parameters()) {
    shapes.push_back({parameter.key(), parameter.value().sizes().vec()});
  }
  return shapes;
}

std::string mib(std::size_t bytes) {
  return fmt::format("{:10.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

struct SnapshotBytes {
  std::size_t first_rank = 0, all_ranks = 0;

  std::size_t on_host(int ranks) const {
    return std::min(all_ranks, first_rank * static_cast<std::size_t>(ranks));
  }
};

// The copy that a checkpoint is written from, beside training: fp32 weights and moments in their
// own type, spread over the ranks; the first one has all weights (checkpointer.hpp). After the last
// step nothing is copied, unless it has to be gathered from slices.
SnapshotBytes snapshot_bytes(const CheckpointOptions& options,
                             const std::vector<parallel::ParameterShape>& shapes,
                             const parallel::DataParallelConfig& config, int ranks) {
  const bool gathers = config.state_sharing == parallel::StateSharing::kSharded && ranks > 1;
  if (!gathers && (!options.asynchronous || options.every == 0)) return {};
  std::size_t elements = 0;
  for (const parallel::ParameterShape& shape : shapes) elements += shape.elements();
  const std::size_t weights = elements * sizeof(float);
  const std::size_t moments =
      elements * core::size_of(config.optimizer.state_dtype) *
      static_cast<std::size_t>(parallel::moments_per_parameter(config.optimizer));
  const std::size_t all = weights + moments;
  return {.first_rank = std::max(weights, all / static_cast<std::size_t>(ranks)), .all_ranks = all};
}

// What slices cost beside their content.
std::string slices_text(const parallel::MemoryPlan& plan) {
  if (!plan.shards_state) return "";
  return fmt::format("  of them        {} pad the slices, so that they are equal\n",
                     mib(plan.padding_bytes));
}

// A start that takes more than training.
std::string start_text(const parallel::MemoryPlan& plan, std::size_t training_bytes) {
  if (plan.start_bytes <= training_bytes) return "";
  return fmt::format("  at the start   {} until {}\n", mib(plan.start_bytes),
                     plan.host_state_bytes > 0 ? "state lies in the memory of the host"
                                               : "the order of the buckets is settled");
}

std::string memory_text(const parallel::MemoryPlan& plan,
                        const model::ActivationMemory& activations, std::size_t snapshot) {
  const std::size_t training_bytes = plan.total_bytes() + activations.peak();
  return fmt::format(
      "Memory of each rank{}\n  parameters     {}\n  master weights {}\n"
      "  gradients      {}\n  moments        {}\n"
      "  activations    {} kept for backward (--recompute)\n"
      "  logits         {} with their gradients (--loss-chunks), or\n"
      "  one block      {} in backward, whichever is more\n"
      "{}"
      "  together       {}\n"
      "{}{}{}",
      plan.shares_state   ? "; of what all ranks share, its part"
      : plan.shards_state ? "; master weights and moments of its slices"
                          : "",
      mib(plan.parameter_bytes), mib(plan.master_bytes), mib(plan.gradient_bytes),
      mib(plan.moment_bytes), mib(activations.kept), mib(activations.loss),
      mib(activations.working),
      plan.stream_bytes == 0
          ? ""
          : fmt::format("  two buffers    {} through which optimizer state comes and goes\n",
                        mib(plan.stream_bytes)),
      mib(training_bytes), slices_text(plan), start_text(plan, training_bytes),
      snapshot == 0 ? ""
                    : fmt::format("  and a copy of  {} while a checkpoint is written (rank 0)\n",
                                  mib(snapshot)));
}

std::size_t pinned_bytes(const parallel::MemoryPlan& plan, const TrainOptions& options) {
  return plan.host_state_bytes + plan.moving_host_bytes + activations_of(options).host;
}

// What --offload leaves to the host.
std::string pinned_text(const PinnedNeed& need, const parallel::MemoryPlan& plan) {
  if (need.rank_bytes == 0) return "";
  const auto in_mib = [](auto bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::string text = fmt::format(
      "Pinned memory of each host: {:.1f} MiB for {} rank(s), each {:.1f} MiB of optimizer state "
      "and "
      "{:.1f} MiB of blocks' inputs (--offload)",
      in_mib(need.pinned_bytes()), need.ranks,
      in_mib(plan.host_state_bytes + plan.moving_host_bytes),
      in_mib(need.rank_bytes - plan.host_state_bytes - plan.moving_host_bytes));
  if (need.usable_bytes)
    text += fmt::format("; {:.1f} MiB are free on this one", in_mib(*need.usable_bytes));
  return text + "\n";
}

std::string bucket_text(const parallel::MemoryPlan& plan,
                        const std::vector<parallel::ParameterShape>& shapes,
                        const parallel::DataParallelConfig& config) {
  std::vector<std::string> names;
  for (const auto& shape : shapes) names.push_back(shape.name);
  std::string text = "Buckets before the first step (the order is observed in it)\n";
  for (const std::string& line : parallel::describe(plan.buckets, names, config.gradient_dtype())) {
    text += "  " + line + "\n";
  }
  return text;
}

// Ranks of several hosts have no memory for one copy.
parallel::DataParallelConfig config_over(const comm::LauncherEnvironment& launcher,
                                         const TrainOptions& options) {
  using parallel::RanksShare;
  parallel::DataParallelConfig config = data_parallel_config(options);
  const bool several_hosts = launcher.local_size > 0 && launcher.local_size < launcher.size;
  config.state_sharing =
      parallel::settled_sharing(config, several_hosts ? RanksShare::kNothing : RanksShare::kMemory);
  return config;
}

std::string data_text(const DataSources& sources, const TrainOptions& options, int ranks) {
  const std::int64_t per_step = tokens_per_step(options, ranks);
  const std::uint64_t samples =
      sources.train->count(static_cast<std::uint64_t>(sequence_length(options)));
  const double epochs = static_cast<double>(per_step / sequence_length(options)) *
                        static_cast<double>(options.steps) / static_cast<double>(samples);
  std::string text = fmt::format("Steps: {} of {} tokens on {} rank(s), {} tokens in all",
                                 options.steps, per_step, ranks, options.steps * per_step);
  if (options.data.source != "synthetic")
    text += fmt::format(", {:.2f} epochs of {} samples", epochs, samples);
  return text + "\n";
}

}  // namespace

DevicePlan plan_device(const TrainOptions& options, int ranks, int ranks_on_host) {
  using parallel::StateResidence;
  parallel::DataParallelConfig config = data_parallel_config(options);
  config.state_sharing = parallel::settled_sharing(config, parallel::RanksShare::kNothing);
  const auto shapes = shapes_of(options.model.config);
  const parallel::MemoryPlan plan = parallel::plan_memory(shapes, config, ranks);
  const bool can = config.optimizer.kernel == parallel::OptimizerKernel::kFused;
  if (can) config.optimizer.state_residence = StateResidence::kHost;
  const SnapshotBytes snapshot = snapshot_bytes(options.checkpoint, shapes, config, ranks);
  const std::size_t least = parallel::plan_memory(shapes, config, ranks).total_bytes();
  return {.training_bytes = plan.total_bytes(),
          .start_bytes = plan.start_bytes,
          .offloaded_bytes = plan.total_bytes() - std::min(plan.total_bytes(), least),
          .pinned_bytes = pinned_bytes(plan, options),
          .copied_bytes = snapshot.on_host(ranks_on_host)};
}

std::string dry_run_text(TrainOptions options, const DryRunPlace& place) {
  const int ranks = place.launcher.size;
  if (options.device != Device::kCuda) refuse_offload_on_processor(options);
  const DataSources sources = open_data(options);
  set_vocabulary(options, sources.vocab_size);
  check_data(sources, options, {.size = ranks});
  const auto shapes = shapes_of(options.model.config);
  const parallel::DataParallelConfig config = config_over(place.launcher, options);
  const parallel::MemoryPlan plan = parallel::plan_memory(shapes, config, ranks);
  const SnapshotBytes snapshot = snapshot_bytes(options.checkpoint, shapes, config, ranks);
  const std::size_t host_copies = snapshot.on_host(place.ranks_on_host);
  const PinnedNeed pinned{.ranks = place.ranks_on_host,
                          .rank_bytes = pinned_bytes(plan, options),
                          .other_bytes = place.ranks_on_host * place.rank_bytes +
                                         static_cast<std::int64_t>(host_copies),
                          .usable_bytes = place.host_bytes};
  require_host_memory(options, pinned);
  const std::string advice = memory_advice(
      options, {.ranks = place.ranks_on_host,
                .usable_bytes = place.usable_bytes,
                .fixed_bytes = static_cast<std::int64_t>(plan.total_bytes()) + place.rank_bytes,
                .start_bytes = static_cast<std::int64_t>(plan.start_bytes) + place.rank_bytes,
                .copied_bytes = static_cast<std::int64_t>(host_copies)});
  return fmt::format("Model {}: {} parameters, vocabulary {} in {} rows, sequence length {}\n",
                     options.model.preset, model::parameter_count(options.model.config),
                     options.model.config.vocab_size, options.model.config.padded_vocab_size,
                     sequence_length(options)) +
         data_text(sources, options, ranks) +
         memory_text(plan, activations_of(options), snapshot.first_rank) +
         pinned_text(pinned, plan) + (advice.empty() ? "" : advice + "\n") +
         bucket_text(plan, shapes, config) + "Nothing was trained (--dry-run).\n";
}

}  // namespace sidestream::launch
