#include "profiling/analysis/collective_match.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "profiling/analysis/collective_list.hpp"
#include "profiling/analysis/step_windows.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;
using trace::TraceSet;

struct Member {
  std::size_t timeline = 0;
  std::vector<std::size_t> rows;
};
using Group = std::vector<Member>;  // by rank
using Parts = std::vector<CollectivePart>;
using Columns = std::map<std::int64_t, Parts>;

constexpr std::int64_t kNoNumber = -1;

CollectivePart part_of(const TraceSet& set, std::size_t timeline, std::size_t row) {
  const RankTimeline& of_rank = set.timelines[timeline];
  return {of_rank.info.rank, timeline, row, of_rank.start_ns(row), of_rank.duration_ns(row)};
}

// Among the steps of a rank: in one, or behind it and before the next.
struct CollectivePlace {
  std::int64_t step = INT64_MIN;
  bool is_inside = false;

  auto operator<=>(const CollectivePlace&) const = default;
};

// A kernel belongs to the step that launched it: the device may come to it in the next one.
class LaunchSteps {
 public:
  LaunchSteps(const RankTimeline& timeline, const std::vector<std::size_t>& collectives)
      : timeline_(timeline), steps_(step_windows(timeline, {})) {
    for (const StepWindow& one : steps_) {
      if (one.step) numbers_.insert(*one.step);
    }
    if (!steps_.empty()) find_launches(collectives);
  }

  CollectivePlace place_of(std::size_t row) const {
    const auto launch = launches_.find(timeline_.correlation(row));
    const std::int64_t time_ns =
        timeline_.start_ns(launch == launches_.end() ? row : launch->second);
    const auto after = std::upper_bound(
        steps_.begin(), steps_.end(), time_ns,
        [](std::int64_t time, const StepWindow& step) { return time < step.window.start_ns; });
    if (after == steps_.begin()) return {};
    const StepWindow& step = *std::prev(after);
    return {step.step.value_or(INT64_MIN), time_ns < step.window.end_ns};
  }

  // Else a kernel counts for the step in which the device came to it.
  bool are_known() const noexcept { return !launches_.empty() || !any_kernel_; }

  const std::set<std::int64_t>& numbers() const noexcept { return numbers_; }

 private:
  // Of these alone: a trace has millions of others.
  void find_launches(const std::vector<std::size_t>& collectives) {
    std::unordered_set<std::uint64_t> wanted;
    for (const std::size_t row : collectives) {
      if (timeline_.kind(row) != trace::Kind::kKernel) continue;
      any_kernel_ = true;
      if (timeline_.correlation(row) != 0) wanted.insert(timeline_.correlation(row));
    }
    for (std::size_t row = 0; row < timeline_.size() && !wanted.empty(); ++row) {
      if (timeline_.kind(row) == trace::Kind::kRuntime &&
          wanted.contains(timeline_.correlation(row)))
        launches_.try_emplace(timeline_.correlation(row), row);
    }
  }

  const RankTimeline& timeline_;
  std::vector<StepWindow> steps_;
  std::set<std::int64_t> numbers_;
  std::unordered_map<std::uint64_t, std::size_t> launches_;
  bool any_kernel_ = false;
};

using RowsOfPlaces = std::map<CollectivePlace, std::vector<std::size_t>>;
using PlaceCounts = std::map<CollectivePlace, std::size_t>;

class Matcher {
 public:
  explicit Matcher(const TraceSet& set) : set_(set) {
    for (std::size_t i = 0; i < set.timelines.size(); ++i) {
      for (auto& [group, rows] : collectives_by_group(set.timelines[i]))
        groups_[{set.timelines[i].info.window, group}].push_back({i, std::move(rows)});
    }
  }

  CollectiveMatches take() {
    for (const auto& [key, group] : groups_) {
      key_ = key;
      operations_differ_ = false;
      if (group.size() < 2)
        add_unmatched(group, 0);
      else if (all_have_number(group))
        match_by_number(group);
      else
        match_by_number_and_order(group);
    }
    return std::move(matches_);
  }

 private:
  std::int64_t number_of(std::size_t timeline, std::size_t row) const {
    const auto* detail = set_.timelines[timeline].collective(row);
    return detail == nullptr || detail->sequence < 0 ? kNoNumber : detail->sequence;
  }

  bool all_have_number(const Group& group) const {
    return std::all_of(group.begin(), group.end(), [&](const Member& member) {
      return std::all_of(member.rows.begin(), member.rows.end(), [&](std::size_t row) {
        return number_of(member.timeline, row) != kNoNumber;
      });
    });
  }

  void match_by_number(const Group& group) {
    const Columns columns = by_number(group);
    for (const auto& [number, parts] : columns) add(number, parts);
    if (columns.size() < most_rows(group)) add_unmatched(group, columns.size());
  }

  void match_by_number_and_order(const Group& group) {
    Columns columns = by_number(group);
    std::vector<Parts> matched = between(group, columns);
    for (auto& [number, parts] : columns) matched.push_back(std::move(parts));
    std::stable_sort(matched.begin(), matched.end(), [](const Parts& a, const Parts& b) {
      return a.front().start_ns < b.front().start_ns;
    });
    for (std::size_t i = 0; i < matched.size(); ++i) add(static_cast<std::int64_t>(i), matched[i]);
    if (matched.empty() || matched.size() < most_rows(group)) add_unmatched(group, matched.size());
  }

  // Those that every rank has.
  Columns by_number(const Group& group) const {
    Columns columns;
    for (std::size_t place = 0; place < group.size(); ++place) {
      for (const std::size_t row : group[place].rows) {
        const std::int64_t number = number_of(group[place].timeline, row);
        if (number == kNoNumber) continue;
        // A number that comes twice on one rank stands for its first collective.
        Parts& parts = columns[number];
        if (parts.size() == place) parts.push_back(part_of(set_, group[place].timeline, row));
      }
    }
    std::erase_if(columns, [&](const auto& one) { return one.second.size() != group.size(); });
    return columns;
  }

  // The others, in the order in which they stand between two that are matched by their number.
  std::vector<Parts> between(const Group& group, const Columns& numbered) {
    Group empty;
    for (const Member& member : group) empty.push_back({member.timeline, {}});
    std::map<std::int64_t, Group> gaps;  // by the number before them
    for (std::size_t place = 0; place < group.size(); ++place) {
      std::int64_t before = kNoNumber;
      for (const std::size_t row : group[place].rows) {
        const auto found = numbered.find(number_of(group[place].timeline, row));
        if (found != numbered.end() && found->second[place].row == row)
          before = found->first;
        else
          gaps.try_emplace(before, empty).first->second[place].rows.push_back(row);
      }
    }
    std::vector<Parts> matched;
    for (const auto& [before, gap] : gaps) {
      for (Parts& parts : by_order(gap)) matched.push_back(std::move(parts));
    }
    return matched;
  }

  // Whether each column may be one collective.
  bool agree(const std::vector<Parts>& columns) {
    return std::all_of(columns.begin(), columns.end(), [&](const Parts& parts) {
      return numbers_agree(parts) && operations_agree(parts);
    });
  }

  // Ranks that each lack another one have equally many of them, and none that match.
  bool numbers_agree(const Parts& parts) const {
    std::int64_t common = kNoNumber;
    return std::all_of(parts.begin(), parts.end(), [&](const CollectivePart& part) {
      const std::int64_t number = number_of(part.timeline, part.row);
      if (common == kNoNumber) common = number;
      return number == kNoNumber || number == common;
    });
  }

  // An all-gather of one rank is no reduce-scatter of another.
  bool operations_agree(const Parts& parts) {
    const auto name_of = [&](const CollectivePart& part) {
      return set_.timelines[part.timeline].name(part.row);
    };
    std::string_view known_name = name_of(parts.front()), common;
    for (const CollectivePart& part : parts) {
      if (name_of(part) == known_name) continue;
      if (common.empty()) common = operation_in_name(known_name);
      known_name = name_of(part);
      const std::string_view operation = operation_in_name(known_name);
      if (common.empty() || operation.empty() || operation == common) continue;
      operations_differ_ = true;
      return false;
    }
    return true;
  }

  static std::size_t most_rows(const Group& group) {
    std::size_t most = 0;
    for (const Member& member : group) most = std::max(most, member.rows.size());
    return most;
  }

  std::vector<Parts> by_order(const Group& group) {
    if (!stand_alike(group)) return by_order_in_steps(group);
    std::vector<Parts> columns(group.front().rows.size());
    for (const Member& member : group) append(columns, 0, member.timeline, member.rows);
    return agree(columns) ? columns : by_order_in_steps(group);
  }

  // As many collectives of steps 10 to 12 as of steps 13 to 15 are no match, nor as many of which
  // one rank has one more before its first step, and another one behind its last. Those that slip
  // over the end of a step on one rank are still in order: by steps each would meet its neighbour.
  bool stand_alike(const Group& group) {
    const Member& first = group.front();
    bool same = true, known = true;
    for (const Member& member : group) {
      same = same && member.rows.size() == first.rows.size() &&
             steps_of(member.timeline).numbers() == steps_of(first.timeline).numbers();
      known = known && steps_of(member.timeline).are_known();
    }
    if (!same || !known) return same;
    const PlaceCounts counts = counts_of_places(first), inside = inside_of(counts);
    bool all_alike = true, inside_alike = true;
    for (const Member& member : group) {
      PlaceCounts others = counts_of_places(member);
      all_alike = all_alike && others == counts;
      inside_alike = inside_alike && inside_of(std::move(others)) == inside;
    }
    return all_alike || !inside_alike;
  }

  PlaceCounts counts_of_places(const Member& member) {
    PlaceCounts counts;
    for (const auto& [place, rows] : rows_of_places(member)) counts[place] = rows.size();
    return counts;
  }

  static PlaceCounts inside_of(PlaceCounts counts) {
    std::erase_if(counts, [](const auto& one) { return !one.first.is_inside; });
    return counts;
  }

  // Counts that differ leave no way to tell which is which, but within a step in which they do not.
  std::vector<Parts> by_order_in_steps(const Group& group) {
    std::vector<RowsOfPlaces> members;
    for (const Member& member : group) members.push_back(rows_of_places(member));
    std::vector<Parts> columns;
    for (const auto& [place, rows] : members.front()) {
      const bool all_alike = std::all_of(
          members.begin(), members.end(), [place = place, count = rows.size()](const auto& member) {
            const auto found = member.find(place);
            return found != member.end() && found->second.size() == count;
          });
      if (!place.is_inside || !all_alike) continue;
      std::vector<Parts> of_step(rows.size());
      for (std::size_t i = 0; i < group.size(); ++i)
        append(of_step, 0, group[i].timeline, members[i].at(place));
      if (!agree(of_step)) continue;
      for (Parts& parts : of_step) columns.push_back(std::move(parts));
    }
    return columns;
  }

  RowsOfPlaces rows_of_places(const Member& member) {
    const LaunchSteps& steps = steps_of(member.timeline);
    RowsOfPlaces of_places;
    for (const std::size_t row : member.rows) of_places[steps.place_of(row)].push_back(row);
    return of_places;
  }

  const LaunchSteps& steps_of(std::size_t timeline) {
    const auto found = steps_.find(timeline);
    if (found != steps_.end()) return found->second;
    std::vector<std::size_t> collectives;
    for (const auto& [key, group] : groups_) {
      for (const Member& member : group) {
        if (member.timeline == timeline)
          collectives.insert(collectives.end(), member.rows.begin(), member.rows.end());
      }
    }
    const RankTimeline& of_rank = set_.timelines[timeline];
    return steps_.try_emplace(timeline, of_rank, collectives).first->second;
  }

  void append(std::vector<Parts>& columns, std::size_t first, std::size_t timeline,
              const std::vector<std::size_t>& rows) const {
    for (std::size_t i = 0; i < rows.size(); ++i)
      columns[first + i].push_back(part_of(set_, timeline, rows[i]));
  }

  void add(std::int64_t index, const Parts& parts) {
    MatchedCollective one{
        .window = key_.first, .group = key_.second, .index = index, .kernel = {}, .parts = parts};
    one.kernel = set_.timelines[parts.front().timeline].name(parts.front().row);
    one.transfer_ns = one.last().duration_ns;
    for (const CollectivePart& part : parts)
      one.same_kernel =
          one.same_kernel && set_.timelines[part.timeline].name(part.row) == one.kernel;
    matches_.matched.push_back(std::move(one));
  }

  void add_unmatched(const Group& group, std::size_t matched) {
    UnmatchedGroup one{
        key_.first, key_.second, {}, static_cast<std::int64_t>(matched), operations_differ_};
    for (const Member& member : group)
      one.count_of_rank[set_.timelines[member.timeline].info.rank] =
          static_cast<std::int64_t>(member.rows.size());
    matches_.unmatched.push_back(std::move(one));
  }

  const TraceSet& set_;
  std::map<std::pair<std::string, std::string>, Group> groups_;
  std::pair<std::string, std::string> key_;
  bool operations_differ_ = false;            // of the group at hand
  std::map<std::size_t, LaunchSteps> steps_;  // of those timelines that were asked about
  CollectiveMatches matches_;
};

}  // namespace

const CollectivePart& MatchedCollective::last() const {
  return *std::min_element(parts.begin(), parts.end(),
                           [](const CollectivePart& a, const CollectivePart& b) {
                             return a.duration_ns < b.duration_ns;
                           });
}

CollectiveMatches match_collectives(const TraceSet& set) { return Matcher(set).take(); }

}  // namespace sidestream::analysis
