#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/base/error.hpp"
#include "launch/trace/nsys_export.hpp"
#include "launch/trace/output_check.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/analysis/align.hpp"
#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_windows.hpp"
#include "profiling/trace/merge.hpp"

namespace sidestream::launch {
namespace {

// From the start of the first wanted step to the end of the last one.
trace::MergeCut cut_of(const trace::RankTimeline& timeline, const MergeOptions& options) {
  trace::MergeCut cut;
  const auto& ranks = options.ranks;
  cut.leave_out =
      !ranks.empty() && std::find(ranks.begin(), ranks.end(), timeline.info.rank) == ranks.end();
  if (cut.leave_out || !options.steps) return cut;
  cut = {.leave_out = true, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
  for (const analysis::StepWindow& one : analysis::step_windows(timeline, {})) {
    if (!one.step || *one.step < options.steps->first || *one.step > options.steps->last) continue;
    cut.leave_out = false;
    cut.first_ns = std::min(cut.first_ns, one.window.start_ns);
    cut.last_ns = std::max(cut.last_ns, one.window.end_ns);
  }
  return cut;
}

}  // namespace

int run_merge(const MergeOptions& options) {
  check_outputs({options.output}, options.inputs);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const NsysExports exports(trace::find_traces(options.inputs));
  trace::TraceSet set =
      trace::load_traces(exports.files(), {.threads = options.threads.value_or(processors)});
  analysis::align_clocks(set, analysis::match_collectives(set));
  std::vector<trace::MergeCut> cuts;
  for (const trace::RankTimeline& timeline : set.timelines)
    cuts.push_back(cut_of(timeline, options));
  if (std::all_of(cuts.begin(), cuts.end(),
                  [](const trace::MergeCut& cut) { return cut.leave_out; }))
    throw core::ConfigError("--ranks or --steps: nothing of these traces is left");
  const trace::MergeResult result = trace::merge_traces(set, cuts, options.output);
  for (const std::string& warning : set.warnings)
    fmt::print(stderr, "sidestream-trace: warning: {}\n", warning);
  fmt::print("{}: {} ranks, {} events, clocks: {}\n", options.output.string(), result.processes,
             result.events, set.clock.method);
  return 0;
}

}  // namespace sidestream::launch
