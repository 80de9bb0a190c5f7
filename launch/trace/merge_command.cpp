#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/standard_output.hpp"
#include "launch/process/stop_request.hpp"
#include "launch/trace/nsys_export.hpp"
#include "launch/trace/output_check.hpp"
#include "launch/trace/single_run.hpp"
#include "launch/trace/trace_commands.hpp"
#include "profiling/analysis/align.hpp"
#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_windows.hpp"
#include "profiling/trace/merge.hpp"

namespace sidestream::launch {
namespace {

bool is_wanted(const MergeOptions& options, int rank) {
  const auto& ranks = options.ranks;
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// From the start of the first wanted step to the end of the last one.
trace::MergeCut cut_of(const trace::RankTimeline& timeline, const MergeOptions& options) {
  trace::MergeCut cut;
  cut.leave_out = !is_wanted(options, timeline.info.rank);
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

// "0 to 3, 7"
std::string text_of(const std::set<std::int64_t>& numbers) {
  std::string text;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    for (auto next = std::next(last); next != numbers.end() && *next == *last + 1; ++next)
      last = next;
    text += text.empty() ? "" : ", ";
    text += *first == *last ? fmt::format("{}", *first) : fmt::format("{} to {}", *first, *last);
    first = std::next(last);
  }
  return text.empty() ? "none" : text;
}

[[noreturn]] void refuse_empty_cut(const trace::TraceSet& set, const MergeOptions& options) {
  std::set<std::int64_t> ranks, steps;
  for (const trace::RankTimeline& timeline : set.timelines) {
    ranks.insert(timeline.info.rank);
    if (!is_wanted(options, timeline.info.rank)) continue;
    for (const analysis::StepWindow& one : analysis::step_windows(timeline, {})) {
      if (one.step) steps.insert(*one.step);
    }
  }
  const bool any_rank = std::any_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) {
    return is_wanted(options, static_cast<int>(rank));
  });
  throw core::ConfigError(
      any_rank
          ? fmt::format("--steps: nothing of these traces is left; steps there: {}", text_of(steps))
          : fmt::format("--ranks: nothing of these traces is left; ranks there: {}",
                        text_of(ranks)));
}

std::string left_out_remark(const trace::MergeLosses& losses) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* kind) {
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? " without " : " and ", count, kind);
  };
  add(losses.bad_times, "whose times cannot be");
  add(losses.unreadable, "that cannot be read");
  add(losses.too_early, "before the first span of the run");
  return text;
}

}  // namespace

int run_merge(const MergeOptions& options) {
  check_outputs({options.output}, options.inputs);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const trace::FoundTraces found = traces_of_one_run(options.inputs);
  const NsysExports exports(found.files);
  trace::TraceSet set =
      trace::load_traces(exports.files(), {.threads = options.threads.value_or(processors)});
  analysis::align_clocks(set, analysis::match_collectives(set));
  std::vector<trace::MergeCut> cuts;
  for (const trace::RankTimeline& timeline : set.timelines)
    cuts.push_back(cut_of(timeline, options));
  if (std::all_of(cuts.begin(), cuts.end(),
                  [](const trace::MergeCut& cut) { return cut.leave_out; }))
    refuse_empty_cut(set, options);
  // A pipe is no file that could be left behind, and its reader may keep a write waiting: what asks
  // to stop ends the process there, as it does until here.
  std::optional<StopRequest> stop;
  if (!core::is_stream(options.output)) stop.emplace();
  trace::MergeResult result;
  try {
    result =
        trace::merge_traces(set, cuts, options.output, [&] { return stop && stop->requested(); });
  } catch (const core::Error& error) {
    if (!stop || !stop->requested()) throw;
    core::print_remark(fmt::format("sidestream-trace: {}\n", error.what()));
    return 128 + stop->signal();
  }
  stop.reset();
  if (const auto left_out = left_out_text(found)) set.warnings.push_back(*left_out);
  for (const std::string& warning : set.warnings)
    core::print_remark(fmt::format("sidestream-trace: warning: {}\n", warning));
  const std::string done = fmt::format(
      "{}: {} rank{}, {} event{}{}, clocks: {}\n", options.output.string(), result.processes,
      result.processes == 1 ? "" : "s", result.events, result.events == 1 ? "" : "s",
      left_out_remark(result.left_out), set.clock.method);
  if (core::is_stream(options.output))
    core::print_remark(done);
  else
    std::fputs(done.c_str(), stdout);
  return 0;
}

}  // namespace sidestream::launch
