#include "profiling/page/timeline_data.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profiling/analysis/event_class.hpp"
#include "profiling/page/sample_lanes.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::page {
namespace {

using analysis::NameClass;
using trace::Kind;
using Json = nlohmann::ordered_json;

// In the order in which they are drawn.
enum class Lane {
  kCompute,
  kCommunication,
  kCopies,
  kData,
  kRanges,
  kOperators,
  kCalls,
  kLocks,
  kNone
};
constexpr std::array kLaneNames = {"compute", "communication", "copies", "data",
                                   "ranges",  "operators",     "calls",  "locks"};

Lane lane_of_range(NameClass name) {
  switch (name) {
    case NameClass::kCollectiveRange:
    case NameClass::kWaitRange:
      return Lane::kCommunication;
    case NameClass::kInputRange:
      return Lane::kData;
    case NameClass::kStepRange:
      return Lane::kNone;  // drawn as the ends of the steps
    default:
      return Lane::kRanges;
  }
}

Lane lane_of(Kind kind, NameClass name) {
  switch (kind) {
    case Kind::kKernel:
    case Kind::kGraph:
      return name == NameClass::kCollectiveKernel ? Lane::kCommunication : Lane::kCompute;
    case Kind::kMemcpy:
    case Kind::kMemset:
      return Lane::kCopies;
    case Kind::kHostRange:
    case Kind::kUnfinished:
      return lane_of_range(name);
    case Kind::kOperator:
      return Lane::kOperators;
    case Kind::kRuntime:
      return Lane::kCalls;
    case Kind::kLock:
      return Lane::kLocks;
    default:
      return Lane::kNone;
  }
}

struct Event {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;
};

struct Window {
  std::optional<std::int64_t> step = {};
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// All files of a rank, in the time of the tables.
struct Rank {
  std::vector<Window> windows;
  std::array<std::vector<Event>, kLaneNames.size()> lanes;
  std::vector<SampleLane> samples;
};

class Names {
 public:
  std::uint32_t number_of(std::string_view name) {
    constexpr std::size_t kLongest = 160;  // templates of kernels can be pages
    const auto [entry, made] = numbers_.try_emplace(std::string(name.substr(0, kLongest)),
                                                    static_cast<std::uint32_t>(list_.size()));
    if (made) list_.push_back(entry->first);
    return entry->second;
  }
  const Json& list() const { return list_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  Json list_ = Json::array();
};

// Lanes of the files of a rank follow each other in time.
void add_samples(std::vector<SampleLane> more, Rank& rank) {
  for (SampleLane& lane : more) {
    const auto same = std::find_if(rank.samples.begin(), rank.samples.end(),
                                   [&](const SampleLane& one) { return one.name == lane.name; });
    if (same == rank.samples.end()) {
      rank.samples.push_back(std::move(lane));
    } else {
      same->full = std::max(same->full, lane.full);
      same->starts.push_back(same->points.size());
      same->points.insert(same->points.end(), lane.points.begin(), lane.points.end());
    }
  }
}

// What lies inside the steps, or everything when there are none.
bool inside_a_step(const analysis::RankView& view, std::int64_t start_ns, std::int64_t end_ns) {
  if (view.steps.empty()) return true;
  return start_ns < view.steps.back().window.end_ns && end_ns > view.steps.front().window.start_ns;
}

void add_file(const report::CommonTime& time, const analysis::RankView& view,
              const report::ShownSteps& shown, Names& names, Rank& rank) {
  const trace::RankTimeline& timeline = *view.timeline;
  const auto common = [&](std::int64_t time_ns) { return time(timeline, time_ns); };
  for (const analysis::StepRow& row : view.steps) {
    if (shown.contain(row.step))
      rank.windows.push_back({row.step, common(row.window.start_ns), common(row.window.end_ns)});
  }
  if (!view.steps.empty())
    add_samples(sample_lanes(timeline, view.steps.front().window.start_ns,
                             view.steps.back().window.end_ns, common),
                rank);
  const analysis::NameClasses classes(timeline.names);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Lane lane = lane_of(timeline.kind(row), classes[timeline.name_id(row)]);
    if (lane == Lane::kNone || !inside_a_step(view, timeline.start_ns(row), timeline.end_ns(row)))
      continue;
    rank.lanes[static_cast<std::size_t>(lane)].push_back({common(timeline.start_ns(row)),
                                                          timeline.duration_ns(row),
                                                          names.number_of(timeline.name(row))});
  }
}

// Durations below the result are left out, so that at most `limit` events are left.
std::int64_t shortest_kept(const std::map<int, Rank>& ranks, std::size_t limit) {
  std::vector<std::int64_t> durations;
  for (const auto& [number, rank] : ranks) {
    for (const auto& lane : rank.lanes) {
      for (const Event& event : lane) durations.push_back(event.duration_ns);
    }
  }
  if (durations.size() <= limit) return 0;
  const auto at = durations.begin() + static_cast<std::ptrdiff_t>(limit);
  std::nth_element(durations.begin(), at, durations.end(), std::greater<>());
  return *at + 1;
}

// By start; of events that start together the outer one first, as nesting is drawn.
bool comes_before(const Event& one, const Event& other) {
  if (one.start_ns != other.start_ns) return one.start_ns < other.start_ns;
  return one.duration_ns > other.duration_ns;
}

Json json_of(int number, Rank& rank) {
  Json windows = Json::array(), lanes = Json::array();
  for (const Window& one : rank.windows)
    windows.push_back({one.step ? Json(*one.step) : Json(), one.start_ns, one.end_ns});
  for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
    std::vector<Event>& events = rank.lanes[lane];
    if (events.empty()) continue;
    std::sort(events.begin(), events.end(), comes_before);
    Json flat = Json::array();
    for (const Event& event : events) {
      flat.push_back(event.start_ns);
      flat.push_back(event.duration_ns);
      flat.push_back(event.name);
    }
    lanes.push_back({{"kind", kLaneNames[lane]}, {"events", std::move(flat)}});
  }
  return {
      {"rank", number}, {"windows", windows}, {"lanes", lanes}, {"samples", json_of(rank.samples)}};
}

}  // namespace

Json timeline_data(const analysis::Analysis& all, std::size_t limit,
                   const report::ShownSteps& shown) {
  Names names;
  std::map<int, Rank> ranks;
  const report::CommonTime time(all);
  for (const analysis::RankView& view : all.ranks)
    add_file(time, view, shown, names, ranks[view.timeline->info.rank]);
  const std::int64_t shortest = shortest_kept(ranks, limit);
  std::size_t left_out = 0;
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (auto& [number, rank] : ranks) {
    for (auto& lane : rank.lanes) {
      left_out +=
          std::erase_if(lane, [&](const Event& event) { return event.duration_ns < shortest; });
      for (const Event& event : lane) {
        first = std::min(first, event.start_ns);
        last = std::max(last, event.start_ns + event.duration_ns);
      }
    }
  }
  Json list = Json::array();
  if (last >= first) {
    for (auto& [number, rank] : ranks) list.push_back(json_of(number, rank));
  }
  return {{"start_ns", last < first ? 0 : first},
          {"length_ns", last < first ? 0 : last - first},
          {"left_out", left_out},
          {"shortest_ns", shortest},
          {"names", names.list()},
          {"ranks", std::move(list)}};
}

}  // namespace sidestream::page
