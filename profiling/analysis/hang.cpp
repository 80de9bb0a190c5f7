#include "profiling/analysis/hang.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/host_ranges.hpp"
#include "profiling/analysis/model_use.hpp"
#include "profiling/ranges/phase_named.hpp"
#include "profiling/statistics/median.hpp"
#include "profiling/trace/decimal.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;

constexpr double kSureMedians = 3;
constexpr std::int64_t kSureNs = 1'000'000'000;  // where no step is finished

// Of each rank, when the last step ended that was finished; nanoseconds since 1970.
std::map<int, std::int64_t> last_ends(const std::vector<RankView>& ranks) {
  std::map<int, std::int64_t> last;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (step.has_tag(StepRow::kUnfinished)) continue;
      const std::int64_t end_ns = step.window.end_ns + rank.timeline->info.base_ns;
      const auto [place, is_new] = last.try_emplace(step.rank, end_ns);
      place->second = std::max(place->second, end_ns);
    }
  }
  return last;
}

bool is_aside(std::string_view phase) {
  return phase == ranges::name_of(ranges::Phase::kEval) ||
         phase == ranges::name_of(ranges::Phase::kCheckpoint);
}

// The rows of open ranges, innermost phase and oldest collective.
struct OpenRows {
  std::optional<std::size_t> step, phase, collective, aside;

  explicit OpenRows(const RankTimeline& timeline) {
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.kind(row) != trace::Kind::kUnfinished) continue;
      const NameClass what = class_of(timeline.name(row));
      if (is_aside(timeline.name(row))) aside = row;
      const auto starts_before = [&](const std::optional<std::size_t>& other) {
        return other && timeline.start_ns(row) < timeline.start_ns(*other);
      };
      if (what == NameClass::kStepRange) {
        step = row;
      } else if (what == NameClass::kCollectiveRange) {
        if (!collective || starts_before(collective)) collective = row;
      } else if (ranges::phase_named(timeline.name(row)) != nullptr && !starts_before(phase)) {
        phase = row;
      }
    }
  }

  std::optional<std::size_t> most_telling() const {
    return collective ? collective : phase ? phase : step;
  }
};

StandingRank standing_of(const RankTimeline& timeline, const OpenRows& open) {
  StandingRank one{.rank = timeline.info.rank,
                   .since_ns = timeline.duration_ns(*open.most_telling())};
  if (open.step)
    one.step = trace::integer_of(timeline.name(*open.step).substr(ranges::kStepPrefix.size()), -1);
  if (open.phase) one.phase = timeline.name(*open.phase);
  if (open.aside) {
    one.aside = timeline.name(*open.aside);
    one.aside_ns = timeline.duration_ns(*open.aside);
  }
  if (!open.collective) return one;
  one.collective = timeline.name(*open.collective);
  const trace::CollectiveDetail* detail = timeline.collective(*open.collective);
  if (detail == nullptr) return one;
  one.bucket = detail->bucket;
  one.sequence = detail->sequence;
  return one;
}

// A rank that wrote down twice where it stands is one rank; the later one has stood longer.
void keep_newest(std::vector<StandingRank>& standing, const StandingRank& one) {
  const auto known = std::ranges::find(standing, one.rank, &StandingRank::rank);
  if (known == standing.end())
    standing.push_back(one);
  else if (std::pair(known->step, known->since_ns) < std::pair(one.step, one.since_ns))
    *known = one;
}

// Of each rank, the last step that any of its recordings has.
std::map<int, std::int64_t> last_steps(const std::vector<RankView>& ranks) {
  std::map<int, std::int64_t> last;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      const auto place = last.try_emplace(step.rank, step.step.value_or(-1)).first;
      place->second = std::max(place->second, step.step.value_or(-1));
    }
  }
  return last;
}

// The step that the others wait in. Who stands more than one before it stood there when somebody
// looked, and has gone on since: no rank is further behind than that.
constexpr std::int64_t kMostBehind = 1;

std::int64_t reached_step(const std::vector<StandingRank>& standing) {
  std::int64_t reached = -1;
  for (const StandingRank& one : standing) reached = std::max(reached, one.step.value_or(-1));
  return reached;
}

bool is_left_behind(const std::optional<std::int64_t>& step, std::int64_t reached) {
  return step && *step + kMostBehind < reached;
}

std::vector<StandingRank> standing_ranks(const std::vector<RankView>& ranks) {
  const std::map<int, std::int64_t> last = last_ends(ranks);
  std::vector<StandingRank> standing;
  for (const RankView& rank : ranks) {
    const RankTimeline& timeline = *rank.timeline;
    const OpenRows open(timeline);
    if (!open.most_telling()) continue;
    const std::int64_t end_ns = timeline.end_ns(*open.most_telling()) + timeline.info.base_ns;
    const auto newest = last.find(timeline.info.rank);
    const bool went_on = newest != last.end() && newest->second > end_ns;
    if (!went_on) keep_newest(standing, standing_of(timeline, open));
  }
  const std::int64_t reached = reached_step(standing);
  std::erase_if(standing,
                [&](const StandingRank& one) { return is_left_behind(one.step, reached); });
  std::stable_sort(standing.begin(), standing.end(),
                   [](const StandingRank& a, const StandingRank& b) {
                     return a.waits() != b.waits() ? b.waits() : a.rank < b.rank;
                   });
  return standing;
}

// How long evaluating and saving take at a time; of each only where one is finished.
std::map<std::string, double> usual_aside_ns(const std::vector<RankView>& ranks) {
  std::map<std::string, double> usual;
  for (const ranges::Phase phase : {ranges::Phase::kEval, ranges::Phase::kCheckpoint}) {
    std::vector<std::int64_t> lengths;
    for (const RankView& rank : ranks) {
      const IntervalSet finished = host_ranges(*rank.timeline, ranges::name_of(phase));
      for (const Interval& one : finished.intervals()) lengths.push_back(one.length_ns());
    }
    if (!lengths.empty())
      usual.emplace(ranges::name_of(phase), statistics::median(std::move(lengths)));
  }
  return usual;
}

// `sure_ns`: how long anything else has to stand still. Others may wait for a rank that evaluates
// or saves.
bool stands_too_long(const std::vector<RankView>& ranks, const std::vector<StandingRank>& standing,
                     double sure_ns) {
  const std::map<std::string, double> usual = usual_aside_ns(ranks);
  const auto is_busy_aside = [&](const StandingRank& one) {
    if (one.waits() || one.aside.empty()) return false;
    const auto known = usual.find(one.aside);
    return known == usual.end() ||
           static_cast<double>(one.aside_ns) < std::max(sure_ns, kSureMedians * known->second);
  };
  const bool any_aside = std::ranges::any_of(standing, is_busy_aside);
  return std::ranges::any_of(standing, [&](const StandingRank& one) {
    const bool is_explained = is_busy_aside(one) || (any_aside && one.waits());
    return !is_explained && static_cast<double>(one.since_ns) >= sure_ns;
  });
}

// Of ranks that are all inside a collective, those whose is an earlier one of the same kind. Of
// different kinds the numbers may be of different communicators.
std::vector<int> behind(const std::vector<StandingRank>& ranks) {
  const auto [first, last] = std::ranges::minmax_element(ranks, {}, &StandingRank::sequence);
  const bool same_kind = std::ranges::all_of(
      ranks, [&](const StandingRank& one) { return one.collective == ranks.front().collective; });
  if (!same_kind || first->sequence < 0 || first->sequence == last->sequence) return {};
  std::vector<int> found;
  for (const StandingRank& one : ranks)
    if (one.sequence == first->sequence) found.push_back(one.rank);
  std::ranges::sort(found);
  return found;
}

}  // namespace

bool Hang::all_wait() const {
  return ranks.size() + past.size() > 1 && without_records.empty() && between_steps.empty() &&
         std::ranges::all_of(ranks, &StandingRank::waits);
}

bool Hang::all_in_one() const {
  const auto is_same = [&](const StandingRank& one) {
    const StandingRank& first = ranks.front();
    const bool numbered = one.sequence >= 0 && first.sequence >= 0;
    return one.collective == first.collective && one.bucket == first.bucket &&
           (!numbered || one.sequence == first.sequence);
  };
  return all_wait() && std::ranges::all_of(ranks, is_same);
}

std::vector<int> Hang::awaited() const {
  if (!is_sure || std::ranges::none_of(ranks, &StandingRank::waits)) return {};
  if (all_wait()) return behind(ranks);
  std::vector<int> found = without_records;
  found.insert(found.end(), between_steps.begin(), between_steps.end());
  for (const StandingRank& one : ranks)
    if (!one.waits()) found.push_back(one.rank);
  std::ranges::sort(found);
  return found;
}

std::optional<Hang> find_hang(const trace::TraceSet& set, const std::vector<RankView>& ranks) {
  Hang hang{.ranks = standing_ranks(ranks)};
  if (hang.ranks.empty()) return std::nullopt;
  for (const StandingRank& one : hang.ranks)
    hang.longest_ns = std::max(hang.longest_ns, one.since_ns);
  const std::vector<int> recorded = set.ranks();
  const std::int64_t reached = reached_step(hang.ranks);
  std::map<int, std::int64_t> last = last_steps(ranks);
  for (int rank = 0; rank < set.world_size; ++rank) {
    if (std::ranges::find(hang.ranks, rank, &StandingRank::rank) != hang.ranks.end()) continue;
    const bool has_end = std::ranges::find(recorded, rank) != recorded.end() &&
                         !(last.contains(rank) && is_left_behind(last[rank], reached));
    if (!has_end)
      hang.without_records.push_back(rank);
    else
      (last.contains(rank) && last[rank] >= reached ? hang.past : hang.between_steps)
          .push_back(rank);
  }
  const std::optional<double> step_ns = median_step_ns(ranks);
  const double sure_ns = step_ns ? kSureMedians * *step_ns : static_cast<double>(kSureNs);
  hang.is_sure = stands_too_long(ranks, hang.ranks, sure_ns);
  return hang;
}

}  // namespace sidestream::analysis
