#include "profiling/report/json_details.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "profiling/ranges/phases.hpp"
#include "profiling/report/table_json.hpp"

namespace sidestream::report {
namespace {

using analysis::Interval;
using Json = nlohmann::ordered_json;

constexpr std::size_t kIntervals = 500;

Json table_json(const Table& table) {
  return {
      {"columns", table.header}, {"rows", json_rows(table)}, {"rows_in_all", table.rows.size()}};
}

// Closes the smallest gaps until few enough are left.
std::vector<Interval> few(std::vector<Interval> intervals) {
  if (intervals.size() <= kIntervals) return intervals;
  const auto gap_before = [&](std::size_t i) {
    return intervals[i].start_ns - intervals[i - 1].end_ns;
  };
  std::vector<std::size_t> open(intervals.size() - 1);  // intervals with a gap before them
  std::iota(open.begin(), open.end(), std::size_t{1});
  const auto widest = open.begin() + static_cast<std::ptrdiff_t>(kIntervals - 1);
  std::nth_element(open.begin(), widest, open.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(gap_before(b), a) < std::pair(gap_before(a), b);
  });
  open.erase(widest, open.end());
  std::sort(open.begin(), open.end());
  std::vector<Interval> kept = {intervals.front()};
  for (const std::size_t i : open) {
    kept.back().end_ns = intervals[i - 1].end_ns;
    kept.push_back(intervals[i]);
  }
  kept.back().end_ns = intervals.back().end_ns;
  return kept;
}

Json lane_json(const std::string& name, const analysis::IntervalSet& set, Interval window) {
  Json pairs = Json::array();
  for (const Interval& one : few(set.within(window).intervals()))
    pairs.push_back({one.start_ns - window.start_ns, one.end_ns - window.start_ns});
  return {{"name", name}, {"intervals_ns", std::move(pairs)}};
}

const analysis::StepRow* middle_step(const analysis::RankView& rank) {
  std::vector<const analysis::StepRow*> steps;
  for (const analysis::StepRow& step : rank.steps) {
    if (step.tags.empty()) steps.push_back(&step);
  }
  if (steps.empty()) return rank.steps.empty() ? nullptr : &rank.steps.front();
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(), [](const auto* a, const auto* b) {
    return a->budget.window_ns < b->budget.window_ns;
  });
  return *middle;
}

// Phases that happen inside the window, in the order of phases.hpp.
void add_phases(Json& lanes, const trace::RankTimeline& timeline, Interval window) {
  std::map<trace::NameId, std::vector<Interval>> of_name;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == trace::Kind::kHostRange)
      of_name[timeline.name_id(row)].push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    const auto found = of_name.find(timeline.names.find(phase.name));
    if (found == of_name.end()) continue;
    const analysis::IntervalSet set(found->second);
    if (set.length_within_ns(window) > 0) lanes.push_back(lane_json(phase.name, set, window));
  }
}

}  // namespace

Json tables_json(const Findings& from) {
  Json tables = Json::object();
  for (const TableSource& source : all_tables())
    tables[source.name] = table_json(source.make(from));
  return tables;
}

Json lanes_json(const analysis::Analysis& all) {
  Json list = Json::array();
  for (const analysis::RankView& rank : all.ranks) {
    const analysis::StepRow* step = middle_step(rank);
    if (step == nullptr) continue;
    Json lanes = {lane_json("compute", rank.activity.compute, step->window),
                  lane_json("communication", rank.activity.communication, step->window),
                  lane_json("copies", rank.activity.copies, step->window)};
    add_phases(lanes, *rank.timeline, step->window);
    list.push_back({{"rank", rank.timeline->info.rank},
                    {"step", step->step ? Json(*step->step) : Json()},
                    {"window_ns", step->window.length_ns()},
                    {"lanes", std::move(lanes)}});
  }
  return list;
}

}  // namespace sidestream::report
