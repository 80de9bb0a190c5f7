#include "profiling/analysis/collective_match.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "profiling/analysis/collective_list.hpp"
#include "profiling/analysis/step_windows.hpp"
#include "profiling/trace/launch_calls.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;
using trace::TraceSet;

struct Member {
  std::size_t timeline = 0;
  std::vector<std::size_t> rows;
};
using Group = std::vector<Member>;  // by rank
using Columns = std::map<std::int64_t, std::vector<CollectivePart>>;

CollectivePart part_of(const TraceSet& set, std::size_t timeline, std::size_t row) {
  const RankTimeline& of_rank = set.timelines[timeline];
  return {of_rank.info.rank, timeline, row, of_rank.start_ns(row), of_rank.duration_ns(row)};
}

using RowsOfSteps = std::map<std::int64_t, std::vector<std::size_t>>;

// A kernel belongs to the step that launched it: the device may come to it in the next one.
RowsOfSteps rows_of_steps(const RankTimeline& timeline, const std::vector<std::size_t>& rows) {
  const std::vector<StepWindow> steps = step_windows(timeline, {});
  const auto launches = trace::launch_calls(timeline);
  RowsOfSteps of_steps;
  for (const std::size_t row : rows) {
    const auto launch = launches.find(timeline.correlation(row));
    const std::int64_t time_ns = timeline.start_ns(launch == launches.end() ? row : launch->second);
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), time_ns,
        [](std::int64_t time, const StepWindow& step) { return time < step.window.start_ns; });
    if (after == steps.begin()) continue;
    const StepWindow& step = *std::prev(after);
    if (step.step && time_ns < step.window.end_ns) of_steps[*step.step].push_back(row);
  }
  return of_steps;
}

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
      const bool has_sequence = all_have_sequence(group);
      const auto columns = group.size() < 2 ? Columns{}
                           : has_sequence   ? by_sequence(group)
                                            : by_order(group);
      std::size_t complete = 0;
      for (const auto& [index, parts] : columns) {
        if (parts.size() != group.size()) continue;
        add(index, parts);
        ++complete;
      }
      const bool some_left = !has_sequence && complete < most_rows(group);
      if (complete == 0 || some_left) add_unmatched(group, complete);
    }
    return std::move(matches_);
  }

 private:
  bool all_have_sequence(const Group& group) const {
    for (const Member& member : group) {
      for (const std::size_t row : member.rows) {
        const auto* detail = set_.timelines[member.timeline].collective(row);
        if (detail == nullptr || detail->sequence < 0) return false;
      }
    }
    return true;
  }

  Columns by_sequence(const Group& group) const {
    Columns columns;
    for (std::size_t place = 0; place < group.size(); ++place) {
      for (const std::size_t row : group[place].rows) {
        const std::int64_t sequence =
            set_.timelines[group[place].timeline].collective(row)->sequence;
        // A number that comes twice on one rank stands for its first collective.
        if (columns[sequence].size() == place)
          columns[sequence].push_back(part_of(set_, group[place].timeline, row));
      }
    }
    return columns;
  }

  static std::size_t most_rows(const Group& group) {
    std::size_t most = 0;
    for (const Member& member : group) most = std::max(most, member.rows.size());
    return most;
  }

  Columns by_order(const Group& group) const {
    for (const Member& member : group) {
      if (member.rows.size() != group.front().rows.size()) return by_order_in_steps(group);
    }
    Columns columns;
    for (const Member& member : group) append(columns, 0, member.timeline, member.rows);
    return columns;
  }

  // Counts that differ leave no way to tell which is which, but within a step in which they do not.
  Columns by_order_in_steps(const Group& group) const {
    std::vector<RowsOfSteps> members;
    for (const Member& member : group)
      members.push_back(rows_of_steps(set_.timelines[member.timeline], member.rows));
    Columns columns;
    for (const auto& [step, rows] : members.front()) {
      const bool all_alike = std::all_of(
          members.begin(), members.end(), [step = step, count = rows.size()](const auto& member) {
            const auto found = member.find(step);
            return found != member.end() && found->second.size() == count;
          });
      if (!all_alike) continue;
      const auto first = static_cast<std::int64_t>(columns.size());
      for (std::size_t i = 0; i < group.size(); ++i)
        append(columns, first, group[i].timeline, members[i].at(step));
    }
    return columns;
  }

  void append(Columns& columns, std::int64_t first, std::size_t timeline,
              const std::vector<std::size_t>& rows) const {
    for (std::size_t i = 0; i < rows.size(); ++i)
      columns[first + static_cast<std::int64_t>(i)].push_back(part_of(set_, timeline, rows[i]));
  }

  void add(std::int64_t index, const std::vector<CollectivePart>& parts) {
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
    UnmatchedGroup one{key_.first, key_.second, {}, static_cast<std::int64_t>(matched)};
    for (const Member& member : group)
      one.count_of_rank[set_.timelines[member.timeline].info.rank] =
          static_cast<std::int64_t>(member.rows.size());
    matches_.unmatched.push_back(std::move(one));
  }

  const TraceSet& set_;
  std::map<std::pair<std::string, std::string>, Group> groups_;
  std::pair<std::string, std::string> key_;
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
