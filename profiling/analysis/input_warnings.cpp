#include "profiling/analysis/input_warnings.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "profiling/statistics/median.hpp"

namespace sidestream::analysis {
namespace {

using Numbers = std::set<std::int64_t>;

std::string span_of(const Numbers& steps) {
  if (steps.empty()) return "none";
  return std::to_string(*steps.begin()) +
         (steps.size() == 1 ? "" : " to " + std::to_string(*steps.rbegin()));
}

// As many steps each, and others: means of ranks are then of different times of the run.
void warn_about_numbers_of_steps(trace::TraceSet& set, const std::map<int, Numbers>& numbers) {
  const auto first = numbers.begin();
  const auto other = std::find_if(first, numbers.end(),
                                  [&](const auto& one) { return one.second != first->second; });
  if (other == numbers.end()) return;
  set.warnings.push_back("ranks have different steps: rank " + std::to_string(first->first) + " " +
                         span_of(first->second) + ", rank " + std::to_string(other->first) + " " +
                         span_of(other->second) +
                         ": their means are of different times of the run");
}

// Also where nothing tells steps apart, and all of a recording is taken for one.
void warn_about_missing_steps(trace::TraceSet& set, const std::vector<RankView>& ranks) {
  const bool without = std::any_of(ranks.begin(), ranks.end(), [](const RankView& rank) {
    return !rank.steps.empty() && !rank.steps.front().step;
  });
  if (!without) return;
  const bool of_nsys = std::any_of(
      ranks.begin(), ranks.end(), [](const RankView& rank) { return rank.timeline->info.of_nsys; });
  set.warnings.push_back(
      std::string("no ranges named ProfilerStep#N: all of a recording counts as one step, so "
                  "figures of a step are of all its steps together. ") +
      (of_nsys ? "Put an NVTX range of that name, N its number, around each step"
               : "Record with a schedule, and prof.step() after each step"));
}

// Nobody trains in steps below a microsecond; times in a larger unit than the format's look like
// that.
void warn_about_units(trace::TraceSet& set, const std::vector<RankView>& ranks) {
  constexpr std::int64_t kShortest = 1'000;
  std::vector<std::int64_t> windows;
  bool of_nsys = false;
  for (const StepRow* step : plain_steps(ranks)) {
    if (step->step) windows.push_back(step->budget.window_ns);
  }
  for (const RankView& rank : ranks) of_nsys = of_nsys || rank.timeline->info.of_nsys;
  if (windows.empty() || statistics::upper_median(std::move(windows)) >= kShortest) return;
  set.warnings.push_back(std::string("steps last less than 1 us: are the times of these traces in "
                                     "another unit than ") +
                         (of_nsys ? "nanoseconds?" : "microseconds?"));
}

// A step is trained once: the same one in two recordings of a rank is of two jobs.
void warn_about_jobs(trace::TraceSet& set, const std::vector<RankView>& ranks) {
  std::set<int> sizes;
  std::set<bool> say_what_they_train;  // as traces of our trainer do
  std::map<std::pair<int, std::int64_t>, std::string> window_of_step;
  const std::string* other = nullptr;
  std::string first;
  for (const RankView& rank : ranks) {
    const trace::RankInfo& info = rank.timeline->info;
    if (info.world_size > 0) sizes.insert(info.world_size);
    if (!info.of_nsys) say_what_they_train.insert(info.figures.tokens_per_step > 0);
    for (const StepRow& step : rank.steps) {
      if (!step.step || !rank.counts(step)) continue;
      const auto [seen, is_new] = window_of_step.try_emplace({info.rank, *step.step}, info.window);
      if (is_new || other != nullptr || seen->second == info.window) continue;
      first = seen->second;
      other = &info.window;
    }
  }
  if (other != nullptr)
    set.warnings.push_back("the recordings " + first + " and " + *other +
                           " have the same steps of a rank: of several jobs, or of starts of one. "
                           "Figures are of all of them together: give one folder alone");
  if (say_what_they_train.size() > 1)
    set.warnings.push_back(
        "some of these traces are of `sidestream train`, others of another program: figures of all "
        "of them together are of neither");
  if (sizes.size() > 1)
    set.warnings.push_back("these traces are of jobs of " + std::to_string(*sizes.begin()) +
                           " and of " + std::to_string(*sizes.rbegin()) +
                           " ranks: figures of all of them together are of neither");
}

void warn_about_steps(trace::TraceSet& set, const std::vector<RankView>& ranks) {
  std::map<int, std::int64_t> steps;
  std::map<int, Numbers> numbers;
  for (const RankView& rank : ranks) {
    steps[rank.timeline->info.rank] += rank.counted_steps();
    for (const StepRow& step : rank.steps) {
      if (step.step && rank.counts(step)) numbers[step.rank].insert(*step.step);
    }
  }
  std::set<std::int64_t> counts;
  for (const auto& [rank, count] : steps) counts.insert(count);
  if (counts.size() < 2 && !numbers.empty()) return warn_about_numbers_of_steps(set, numbers);
  if (counts.size() < 2) return;
  set.warnings.push_back("ranks have different numbers of steps, from " +
                         std::to_string(*counts.begin()) + " to " +
                         std::to_string(*counts.rbegin()));
}

// One warning a window: its ranks lose about as many.
struct LostRanges {
  std::uint64_t count = 0;
  std::uint64_t room_needed = 0;
  std::int64_t first_whole_step = 0;
  bool all_known = true;  // where they were
};

void warn_about_lost_ranges(trace::TraceSet& set, const std::vector<RankView>& ranks) {
  std::map<std::string, LostRanges> windows;
  for (const RankView& rank : ranks) {
    const trace::RankInfo& info = rank.timeline->info;
    if (info.dropped_ranges == 0) continue;
    LostRanges& lost = windows[info.window];
    lost.count += info.dropped_ranges;
    lost.room_needed = std::max(lost.room_needed, info.record_ranges_needed);
    lost.all_known = lost.all_known && info.complete_from_ns.has_value();
    const auto whole = std::find_if(rank.steps.begin(), rank.steps.end(), [](const StepRow& step) {
      return step.step && !step.has_tag(StepRow::kIncomplete);
    });
    if (whole != rank.steps.end())
      lost.first_whole_step = std::max(lost.first_whole_step, *whole->step);
  }
  for (const auto& [window, lost] : windows) {
    std::string text = std::to_string(lost.count) + " ranges found no room in the recorder";
    text += !lost.all_known ? ", and where they were is not known: figures may be too small"
            : lost.first_whole_step == 0
                ? ": no step has all of its ranges, and none is in a figure"
                : ": steps before " + std::to_string(lost.first_whole_step) + " are left out";
    if (lost.room_needed > 0)
      text += "; --record-ranges " + std::to_string(lost.room_needed) + " has room for them all";
    set.warnings.push_back(std::move(text));
  }
}

void warn_about_collectives(trace::TraceSet& set, const CollectiveMatches& matches,
                            const std::vector<CollectiveRow>& collectives) {
  if (set.ranks().size() > 1 && collectives.empty())
    set.warnings.push_back(
        "several ranks and not one collective: neither NCCL or RCCL kernels nor ranges of ours");
  else if (set.world_size > 1 && collectives.empty())
    set.warnings.push_back("one rank of " + std::to_string(set.world_size) +
                           ", and not one collective: what it spent on the others is not in its "
                           "trace");
  for (const UnmatchedGroup& group : matches.unmatched) {
    if (group.count_of_rank.size() < 2) continue;
    std::int64_t most = 0, least = INT64_MAX;
    for (const auto& [rank, count] : group.count_of_rank) {
      most = std::max(most, count);
      least = std::min(least, count);
    }
    if (group.matched == 0) {
      set.warnings.push_back("collectives of " + group.group + " cannot be matched: " +
                             (most != least ? "ranks have different numbers of them"
                              : group.operations_differ
                                  ? "ranks have different ones in the same place"
                                  : "none of one rank has the number of one of another"));
      continue;
    }
    set.warnings.push_back(
        std::to_string(most - group.matched) + " of " + std::to_string(most) + " collectives of " +
        group.group +
        " are not matched: ranks have different ones, or different numbers of them in "
        "their steps");
  }
}

// What a run writes about itself is the same in all its traces.
void warn_about_models(trace::TraceSet& set) {
  std::set<std::pair<double, double>> figures;
  for (const trace::RankTimeline& timeline : set.timelines) {
    const trace::RunFigures& one = timeline.info.figures;
    if (one.flops_per_token > 0) figures.insert({one.flops_per_token, one.tokens_per_step});
  }
  if (figures.size() < 2) return;
  set.warnings.push_back("these traces are of " + std::to_string(figures.size()) +
                         " models or batch sizes: figures over all of them are of none of them");
}

void warn_about_clocks(trace::TraceSet& set, const std::vector<ClockFaults>& faults) {
  for (std::size_t i = 0; i < set.timelines.size(); ++i) {
    if (!faults[i].any()) continue;
    set.warnings.push_back(set.timelines[i].info.file +
                           ": its times contradict each other, as clocks ran backwards or do not "
                           "agree, or some are damaged: " +
                           describe(faults[i]) + "; times, shares and idle causes may be wrong");
  }
}

void warn_about_graphs(trace::TraceSet& set) {
  std::int64_t launches = 0, total_ns = 0;
  for (const trace::RankTimeline& timeline : set.timelines) {
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.kind(row) != trace::Kind::kGraph) continue;
      ++launches;
      total_ns += timeline.duration_ns(row);
    }
  }
  if (launches == 0) return;
  set.warnings.push_back(
      std::to_string(launches) + " launches of CUDA graphs (" + std::to_string(total_ns) +
      " ns) hide their kernels and are not counted: record with --cuda-graph-trace=node");
}

}  // namespace

void warn_about_input(trace::TraceSet& set, const Analysis& all,
                      const std::vector<ClockFaults>& faults) {
  warn_about_steps(set, all.ranks);
  warn_about_missing_steps(set, all.ranks);
  warn_about_units(set, all.ranks);
  warn_about_jobs(set, all.ranks);
  warn_about_lost_ranges(set, all.ranks);
  warn_about_collectives(set, all.matches, all.collectives);
  warn_about_graphs(set);
  warn_about_clocks(set, faults);
  warn_about_models(set);
}

}  // namespace sidestream::analysis
