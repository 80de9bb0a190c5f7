#include "launch/assembly/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/memory_advice.hpp"
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

// Of state in slices: what slices cost beside their content, and a start that takes more than
// training.
std::string slices_text(const parallel::MemoryPlan& plan, std::size_t training_bytes) {
  if (!plan.shards_state) return "";
  std::string text = fmt::format("  of them        {} pad the slices, so that they are equal\n",
                                 mib(plan.padding_bytes));
  if (plan.start_bytes > training_bytes)
    text += fmt::format("  at the start   {} until the order of the buckets is settled\n",
                        mib(plan.start_bytes));
  return text;
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
      "  together       {}\n"
      "{}{}",
      plan.shares_state   ? "; of what all ranks share, its part"
      : plan.shards_state ? "; master weights and moments of its slices"
                          : "",
      mib(plan.parameter_bytes), mib(plan.master_bytes), mib(plan.gradient_bytes),
      mib(plan.moment_bytes), mib(activations.kept), mib(activations.loss),
      mib(activations.working), mib(training_bytes), slices_text(plan, training_bytes),
      snapshot == 0 ? ""
                    : fmt::format("  and a copy of  {} while a checkpoint is written (rank 0)\n",
                                  mib(snapshot)));
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

std::size_t planned_device_bytes(const TrainOptions& options, int ranks) {
  parallel::DataParallelConfig config = data_parallel_config(options);
  config.state_sharing = parallel::settled_sharing(config, parallel::RanksShare::kNothing);
  return parallel::plan_memory(shapes_of(options.model.config), config, ranks).peak_bytes();
}

std::string dry_run_text(TrainOptions options, const DryRunPlace& place) {
  const int ranks = place.launcher.size;
  const DataSources sources = open_data(options);
  set_vocabulary(options, sources.vocab_size);
  check_data(sources, options, {.size = ranks});
  const auto shapes = shapes_of(options.model.config);
  const parallel::DataParallelConfig config = config_over(place.launcher, options);
  const parallel::MemoryPlan plan = parallel::plan_memory(shapes, config, ranks);
  const SnapshotBytes snapshot = snapshot_bytes(options.checkpoint, shapes, config, ranks);
  const std::size_t host_copies = std::min(
      snapshot.all_ranks, snapshot.first_rank * static_cast<std::size_t>(place.ranks_on_host));
  return fmt::format("Model {}: {} parameters, vocabulary {} in {} rows, sequence length {}\n",
                     options.model.preset, model::parameter_count(options.model.config),
                     options.model.config.vocab_size, options.model.config.padded_vocab_size,
                     sequence_length(options)) +
         data_text(sources, options, ranks) +
         memory_text(plan, activations_of(options), snapshot.first_rank) +
         memory_advice(
             options,
             {.ranks = place.ranks_on_host,
              .usable_bytes = place.usable_bytes,
              .fixed_bytes = static_cast<std::int64_t>(plan.total_bytes()) + place.rank_bytes,
              .start_bytes = static_cast<std::int64_t>(plan.start_bytes) + place.rank_bytes,
              .copied_bytes = static_cast<std::int64_t>(host_copies)}) +
         bucket_text(plan, shapes, config) + "Nothing was trained (--dry-run).\n";
}

}  // namespace sidestream::launch
