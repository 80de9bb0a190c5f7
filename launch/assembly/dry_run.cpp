#include "launch/assembly/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "comm/device/device_choice.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/data_check.hpp"
#include "launch/assembly/memory_advice.hpp"
#include "launch/assembly/offload_assembly.hpp"
#include "launch/assembly/rank_plan.hpp"
#include "launch/device/device_feed.hpp"
#include "launch/options/train_parser.hpp"
#include "parallel/memory_plan.hpp"

namespace sidestream::launch {
namespace {

// Planning for a GPU needs none: what that leaves open.
std::string gpu_text(const TrainOptions& options, const DryRunPlace& place) {
  if (options.device != Device::kCuda) return "";
  if (place.has_gpu)
    return "Planned for the GPU that this machine has; its driver and its memory were not asked. "
           "--device cpu plans for the processor.\n";
  return "No GPU was found on this machine: planned for one all the same (--device cuda). Whether "
         "its memory suffices was not checked; a run without one is refused. --device cpu plans "
         "for the processor.\n";
}

std::string mib(std::size_t bytes) {
  return fmt::format("{:10.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// What slices cost beside their content.
std::string slices_text(const parallel::MemoryPlan& plan) {
  if (!plan.shards_state) return "";
  return fmt::format("  of them        {} pad the slices, so that they are equal\n",
                     mib(plan.padding_bytes));
}

// What takes more than training: a start, and with slices every move of the buckets.
std::string start_text(const parallel::MemoryPlan& plan, std::size_t training_bytes) {
  if (plan.start_bytes <= training_bytes) return "";
  if (plan.host_state_bytes > 0)
    return fmt::format("  at the start   {} until state lies in the memory of the host\n",
                       mib(plan.start_bytes));
  return fmt::format("  between steps  {} while slices are set up, or move with the buckets\n",
                     mib(plan.start_bytes));
}

// What no flag takes away, as a run on a GPU counts it before it starts; and what of the host a
// copy engine reads batches from.
std::string gpu_programs_text(const TrainOptions& options) {
  std::string text = fmt::format("  and libraries  {} of CUDA, cuBLAS and NCCL (an estimate)\n",
                                 mib(comm::kLibraryBytes));
  if (!options.data.pin_memory) return text;
  const data::LoaderConfig loader =
      loader_config(options, {}, {}, {.max_held = DeviceFeed::kBatchesHeld});
  return text + fmt::format("  on the host    {} pinned for batches (--pin-memory, --prefetch)\n",
                            mib(loader.memory_bytes()));
}

std::string programs_text(const TrainOptions& options, const DryRunPlace& place) {
  if (options.device == Device::kCuda) return gpu_programs_text(options);
  if (place.rank_bytes == 0) return "";
  return fmt::format("  and programs   {} of LibTorch and MPI (an estimate)\n",
                     mib(static_cast<std::size_t>(place.rank_bytes)));
}

std::string memory_text(const RankPlan& whole) {
  const parallel::MemoryPlan& plan = whole.state;
  const model::ActivationMemory& activations = whole.activations;
  const std::size_t training_bytes = whole.training_bytes(), snapshot = whole.snapshot.first_rank;
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
      mib(plan.parameter_bytes), mib(plan.master_bytes), mib(plan.own_gradient_bytes()),
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
PlanPlace plan_place(const DryRunPlace& place) {
  using parallel::RanksShare;
  const comm::LauncherEnvironment& launcher = place.launcher;
  const bool several_hosts = launcher.local_size > 0 && launcher.local_size < launcher.size;
  return {.ranks = launcher.size,
          .ranks_on_host = place.ranks_on_host,
          .share = several_hosts ? RanksShare::kNothing : RanksShare::kMemory};
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

std::string dry_run_text(TrainOptions options, const DryRunPlace& place) {
  const int ranks = place.launcher.size;
  if (options.device != Device::kCuda) refuse_what_needs_a_gpu(options);
  const DataSources sources = open_data(options);
  set_vocabulary(options, sources.vocab_size);
  check_data(sources, options, {.size = ranks});
  const RankPlanner planner(options, plan_place(place));
  const RankPlan plan = planner.plan(options);
  const PinnedNeed pinned{.ranks = place.ranks_on_host,
                          .rank_bytes = plan.pinned_bytes(),
                          .other_bytes = place.ranks_on_host * place.rank_bytes +
                                         static_cast<std::int64_t>(plan.copied_bytes),
                          .usable_bytes = place.host_bytes};
  require_host_memory(options, pinned);
  const std::string advice =
      memory_advice(options, [&](const TrainOptions& other) { return planner.plan(other); },
                    {.ranks = ranks,
                     .ranks_on_host = place.ranks_on_host,
                     .rank_bytes = place.rank_bytes,
                     .usable_bytes = place.usable_bytes});
  return fmt::format("Model {}: {} parameters, vocabulary {} in {} rows, sequence length {}\n",
                     options.model.preset, model::parameter_count(options.model.config),
                     options.model.config.vocab_size, options.model.config.padded_vocab_size,
                     sequence_length(options)) +
         data_text(sources, options, ranks) + memory_text(plan) + programs_text(options, place) +
         pinned_text(pinned, plan.state) + (advice.empty() ? "" : advice + "\n") +
         bucket_text(plan.state, planner.shapes(), planner.config(options)) +
         gpu_text(options, place) + "Nothing was trained (--dry-run).\n";
}

}  // namespace sidestream::launch
