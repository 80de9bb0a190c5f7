#include "profiling/analysis/singular_steps.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "profiling/ranges/phases.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::analysis {
namespace {

constexpr std::int64_t kOutlierMedians = 5;
constexpr std::size_t kLeastSteps = 10;
constexpr std::size_t kOneOf = 10;

// The rest of a step that was cut off is in another file.
void tag_rests(std::vector<RankView>& ranks) {
  std::set<std::pair<int, std::int64_t>> cut;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (step.step && step.has_tag(StepRow::kUnfinished)) cut.insert({step.rank, *step.step});
    }
  }
  for (RankView& rank : ranks) {
    for (StepRow& step : rank.steps) {
      if (step.step && cut.contains({step.rank, *step.step}) && !step.has_tag(StepRow::kUnfinished))
        step.tags.push_back(StepRow::kUnfinished);
    }
  }
}

// Of steps without tags, the longest of all ranks.
std::map<std::int64_t, std::int64_t> lengths_of(const std::vector<RankView>& ranks) {
  std::map<std::int64_t, std::int64_t> lengths;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (!step.step || !step.tags.empty()) continue;
      std::int64_t& longest = lengths[*step.step];
      longest = std::max(longest, step.budget.window_ns);
    }
  }
  return lengths;
}

std::set<std::int64_t> outliers_among(const std::map<std::int64_t, std::int64_t>& lengths) {
  std::vector<std::int64_t> all;
  for (const auto& [step, length_ns] : lengths) all.push_back(length_ns);
  if (all.size() < kLeastSteps) return {};
  const std::int64_t median_ns = statistics::upper_median(all);
  std::set<std::int64_t> outliers;
  for (const auto& [step, length_ns] : lengths) {
    if (length_ns / kOutlierMedians >= median_ns) outliers.insert(step);
  }
  return outliers.size() * kOneOf <= all.size() ? outliers : std::set<std::int64_t>();
}

// The phase that takes most of a step.
std::string longest_phase(const RankView& rank, const StepRow& step) {
  std::map<trace::NameId, std::vector<Interval>> of_phase;
  for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
    if (rank.timeline->kind(row) == trace::Kind::kHostRange)
      of_phase[rank.timeline->name_id(row)].push_back(
          {rank.timeline->start_ns(row), rank.timeline->end_ns(row)});
  }
  std::string name;
  std::int64_t longest_ns = 0;
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const auto found = of_phase.find(rank.timeline->names.find(phase.name));
    if (phase.category == ranges::Category::kCommunication || found == of_phase.end()) continue;
    const std::int64_t time_ns = IntervalSet(found->second).length_within_ns(step.window);
    if (time_ns <= longest_ns) continue;
    longest_ns = time_ns;
    name = phase.name;
  }
  return 2 * longest_ns > step.window.length_ns() ? name : "";
}

std::int64_t waited_ns(const StepRow& step) {
  return step.budget.exposed_comm_ns + step.idle.comm_ns;
}

}  // namespace

void tag_singular_steps(std::vector<RankView>& ranks) {
  tag_rests(ranks);
  const std::set<std::int64_t> outliers = outliers_among(lengths_of(ranks));
  for (RankView& rank : ranks) {
    std::vector<Interval> singular;
    for (StepRow& step : rank.steps) {
      if (step.step && step.tags.empty() && outliers.contains(*step.step))
        step.tags.push_back(StepRow::kOutlier);
      if (step.is_singular()) singular.push_back(step.window);
    }
    rank.singular = IntervalSet(std::move(singular));
  }
}

std::vector<Outlier> find_outliers(const std::vector<RankView>& ranks) {
  struct Place {
    const RankView* rank;
    const StepRow* step;
  };
  std::map<std::int64_t, Place> least_waiting;
  std::map<std::int64_t, Outlier> found;
  std::vector<std::int64_t> lengths;
  for (const auto& [step, length_ns] : lengths_of(ranks)) lengths.push_back(length_ns);
  const std::int64_t median_ns = std::max<std::int64_t>(1, statistics::upper_median(lengths));
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (!step.has_tag(StepRow::kOutlier)) continue;
      Outlier& one = found[*step.step];
      one.step = *step.step;
      one.length_ns = std::max(one.length_ns, step.window.length_ns());
      const auto [place, is_new] = least_waiting.try_emplace(one.step, Place{&rank, &step});
      if (waited_ns(step) < waited_ns(*place->second.step)) place->second = {&rank, &step};
    }
  }
  std::vector<Outlier> list;
  for (auto& [step, one] : found) {
    const Place& place = least_waiting.at(step);
    one.medians = static_cast<double>(one.length_ns) / static_cast<double>(median_ns);
    one.rank = place.step->rank;
    one.phase = longest_phase(*place.rank, *place.step);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace sidestream::analysis
