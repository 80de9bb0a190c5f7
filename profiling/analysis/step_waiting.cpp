#include "profiling/analysis/step_waiting.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace sidestream::analysis {
namespace {

using WaitsOfFile = std::map<std::size_t, IntervalSet>;

WaitsOfFile waits_of_files(const CollectiveMatches& matches) {
  std::map<std::size_t, std::vector<Interval>> intervals;
  for (const MatchedCollective& one : matches.matched) {
    for (const CollectivePart& part : one.parts)
      intervals[part.timeline].push_back({part.start_ns, part.end_ns() - one.transfer_ns});
  }
  WaitsOfFile waits;
  for (auto& [file, list] : intervals) waits.emplace(file, IntervalSet(std::move(list)));
  return waits;
}

}  // namespace

std::vector<StepWaiting> waiting_in_steps(const std::vector<RankView>& ranks,
                                          const CollectiveMatches& matches) {
  const WaitsOfFile waits = waits_of_files(matches);
  std::map<std::pair<std::string, std::int64_t>, StepWaiting> steps;
  visit_plain_steps(ranks, [&](std::size_t file, const StepRow& step) {
    const auto of_file = waits.find(file);
    if (of_file == waits.end()) return;
    const std::int64_t waited_ns = of_file->second.length_within_ns(step.window);
    const auto key = std::pair(ranks[file].timeline->info.window, step.step.value_or(-1));
    steps[key].of_rank[step.rank] = {waited_ns, std::min(waited_ns, step.budget.exposed_comm_ns)};
  });
  std::vector<StepWaiting> list;
  for (auto& [key, step] : steps) list.push_back(std::move(step));
  return list;
}

std::map<std::size_t, std::int64_t> waited_in_files(const std::vector<RankView>& ranks,
                                                    const CollectiveMatches& matches) {
  const WaitsOfFile waits = waits_of_files(matches);
  std::map<std::size_t, std::int64_t> waited;
  visit_plain_steps(ranks, [&](std::size_t file, const StepRow& step) {
    const auto of_file = waits.find(file);
    if (of_file != waits.end()) waited[file] += of_file->second.length_within_ns(step.window);
  });
  return waited;
}

}  // namespace sidestream::analysis
