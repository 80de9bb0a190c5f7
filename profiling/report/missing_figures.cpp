#include "profiling/report/missing_figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "profiling/analysis/verdict.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::report {
namespace {

bool any_flops(const analysis::Analysis& all) {
  return std::any_of(all.operations.begin(), all.operations.end(),
                     [](const analysis::Operation& one) { return one.flops.total().has_value(); });
}

// "of collectives" where none was matched over ranks, "of some collectives (all_gather, reduce)",
// with what took longest first; empty where each kind has some that were.
std::string without_transfers(const analysis::Analysis& all) {
  std::vector<const analysis::CollectiveRow*> rows;
  for (const analysis::CollectiveRow& row : all.collectives) {
    if (!row.transfer_ns) rows.push_back(&row);
  }
  if (rows.empty()) return "";
  if (rows.size() == all.collectives.size()) return "of collectives";
  std::ranges::stable_sort(rows, std::ranges::greater(), &analysis::CollectiveRow::unmatched_ns);
  std::vector<std::string> names;  // buckets and sizes of a kind have rows of their own
  for (const analysis::CollectiveRow* row : rows) {
    if (std::ranges::find(names, row->name) == names.end()) names.push_back(row->name);
  }
  return fmt::format("of some collectives ({})", fmt::join(names, ", "));
}

bool any_rank(const analysis::Analysis& all, analysis::Where where) {
  return std::any_of(all.ranks.begin(), all.ranks.end(),
                     [&](const analysis::RankView& rank) { return rank.activity.where == where; });
}

// What is of a device, where it could be there at all.
std::string needs_of_device(const analysis::Analysis& all, const char* recorded) {
  using analysis::Where;
  const bool by_processors = any_rank(all, Where::kHost) && !any_rank(all, Where::kDevice);
  return by_processors ? "a GPU: these ranks compute on processors" : recorded;
}

std::string needs_of_kernels(const analysis::Analysis& all, const char* recorded) {
  return analysis::has_hidden_kernels(all.ranks) ? analysis::kNeedsGraphNodes
                                                 : needs_of_device(all, recorded);
}

}  // namespace

std::vector<MissingFigure> missing_figures(const analysis::Analysis& all, const RunMetrics& run) {
  std::vector<MissingFigure> list;
  const auto need = [&](bool missing, const std::string& name, const std::string& needs) {
    if (missing) list.push_back({name, needs});
  };
  constexpr const char* kRun = "the run directory of the traces (metrics.jsonl)";
  const std::string peak = "what the machine can do (`sidestream bench ceilings`, before the run)";
  const std::string run_and_peak = run.tokens_per_s ? peak : kRun + (", and " + peak);
  const Throughput throughput = throughput_of(all, run);
  need(!throughput.mfu, "mfu", run_and_peak);
  need(!throughput.mfu_palm, "mfu_palm", run_and_peak);
  need(!throughput.tokens_per_s, "tokens_per_s", kRun);
  need(!run.ettr, "ettr", "a run directory with an ettr.jsonl, or a run.json that holds it");
  need(!all.utilisation.gpu_utilisation, "gpu_utilisation", needs_of_kernels(all, "device events"));
  need(!all.utilisation.tensor_core_share, "tensor_core_share", needs_of_kernels(all, "kernels"));
  need(all.utilisation.gpu_utilisation && all.device_counters.of_ranks.empty(), "gpu_counters",
       "counters of the GPUs (nsys profile --gpu-metrics-devices=all, of older releases "
       "--gpu-metrics-device=all)");
  need(!all.system.machine_cpu, "machine_cpu", "system samples inside the steps (--sample-hz 20)");
  need(!all.system.joules_per_token, "joules_per_token",
       needs_of_device(all, "samples of every GPU's energy inside the steps (--sample-hz 20)"));
  const std::string unmatched = without_transfers(all);
  need(!unmatched.empty(), "transfer and waiting " + unmatched,
       "the traces of all ranks of a process group");
  need(!any_flops(all), "flops of operations", "shapes (--profile-shapes)");
  need(analysis::has_nameless_kernels(all.ranks),
       "what of the kernels is communication (those without a name count as computing)",
       analysis::verdict_needs(all.ranks));
  need(analysis::has_hidden_kernels(all.ranks),
       "what CUDA graphs did, and how much of the idle time that is", analysis::kNeedsGraphNodes);
  need(!all.verdict, "verdict", analysis::verdict_needs(all.ranks));
  return list;
}

}  // namespace sidestream::report
