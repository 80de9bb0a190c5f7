#include "profiling/analysis/collective_match.hpp"

#include <algorithm>
#include <utility>

#include "profiling/analysis/collective_list.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;
using trace::TraceSet;

struct Member {
  std::size_t timeline = 0;
  std::vector<std::size_t> rows;
};
using Group = std::vector<Member>;  // by rank

CollectivePart part_of(const TraceSet& set, std::size_t timeline, std::size_t row) {
  const RankTimeline& of_rank = set.timelines[timeline];
  return {of_rank.info.rank, timeline, row, of_rank.start_ns(row), of_rank.duration_ns(row)};
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
      const auto columns = group.size() < 2 ? std::map<std::int64_t, std::vector<CollectivePart>>{}
                           : all_have_sequence(group) ? by_sequence(group)
                                                      : by_order(group);
      std::size_t complete = 0;
      for (const auto& [index, parts] : columns) {
        if (parts.size() != group.size()) continue;
        add(index, parts);
        ++complete;
      }
      if (complete == 0) add_unmatched(group);
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

  std::map<std::int64_t, std::vector<CollectivePart>> by_sequence(const Group& group) const {
    std::map<std::int64_t, std::vector<CollectivePart>> columns;
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

  // Counts that differ leave no way to tell which is which.
  std::map<std::int64_t, std::vector<CollectivePart>> by_order(const Group& group) const {
    std::map<std::int64_t, std::vector<CollectivePart>> columns;
    for (const Member& member : group) {
      if (member.rows.size() != group.front().rows.size()) return {};
    }
    for (const Member& member : group) {
      for (std::size_t i = 0; i < member.rows.size(); ++i)
        columns[static_cast<std::int64_t>(i)].push_back(
            part_of(set_, member.timeline, member.rows[i]));
    }
    return columns;
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

  void add_unmatched(const Group& group) {
    UnmatchedGroup one{key_.first, key_.second, {}};
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
