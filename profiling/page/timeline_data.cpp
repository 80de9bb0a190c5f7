#include "profiling/page/timeline_data.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include "profiling/analysis/event_class.hpp"

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

struct Rank {
  const analysis::RankView* view = nullptr;
  trace::RankClock clock;
  std::array<std::vector<Event>, kLaneNames.size()> lanes;

  std::int64_t common(std::int64_t time_ns) const {
    return clock.to_common(time_ns + view->timeline->info.base_ns);
  }
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

// What lies inside the steps, or everything when there are none.
bool inside_a_step(const analysis::RankView& view, std::int64_t start_ns, std::int64_t end_ns) {
  if (view.steps.empty()) return true;
  return start_ns < view.steps.back().window.end_ns && end_ns > view.steps.front().window.start_ns;
}

Rank read_rank(const analysis::Analysis& all, const analysis::RankView& view, Names& names) {
  const trace::RankTimeline& timeline = *view.timeline;
  Rank rank{.view = &view, .clock = all.set->clock.of(timeline.info.rank), .lanes = {}};
  const analysis::NameClasses classes(timeline.names);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Lane lane = lane_of(timeline.kind(row), classes[timeline.name_id(row)]);
    if (lane == Lane::kNone || !inside_a_step(view, timeline.start_ns(row), timeline.end_ns(row)))
      continue;
    rank.lanes[static_cast<std::size_t>(lane)].push_back({rank.common(timeline.start_ns(row)),
                                                          timeline.duration_ns(row),
                                                          names.number_of(timeline.name(row))});
  }
  return rank;
}

// Durations below the result are left out, so that at most `limit` events are left.
std::int64_t shortest_kept(const std::vector<Rank>& ranks, std::size_t limit) {
  std::vector<std::int64_t> durations;
  for (const Rank& rank : ranks) {
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

Json json_of(Rank& rank, std::int64_t origin_ns) {
  Json windows = Json::array(), lanes = Json::array();
  for (const analysis::StepRow& row : rank.view->steps)
    windows.push_back({row.step ? Json(*row.step) : Json(),
                       rank.common(row.window.start_ns) - origin_ns,
                       rank.common(row.window.end_ns) - origin_ns});
  for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
    std::vector<Event>& events = rank.lanes[lane];
    if (events.empty()) continue;
    std::sort(events.begin(), events.end(), comes_before);
    Json flat = Json::array();
    for (const Event& event : events) {
      flat.push_back(event.start_ns - origin_ns);
      flat.push_back(event.duration_ns);
      flat.push_back(event.name);
    }
    lanes.push_back({{"kind", kLaneNames[lane]}, {"events", std::move(flat)}});
  }
  return {{"rank", rank.view->timeline->info.rank}, {"windows", windows}, {"lanes", lanes}};
}

}  // namespace

Json timeline_data(const analysis::Analysis& all, std::size_t limit) {
  Names names;
  std::vector<Rank> ranks;
  for (const analysis::RankView& view : all.ranks) ranks.push_back(read_rank(all, view, names));
  const std::int64_t shortest = shortest_kept(ranks, limit);
  std::size_t left_out = 0;
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (Rank& rank : ranks) {
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
    for (Rank& rank : ranks) list.push_back(json_of(rank, first));
  }
  return {{"length_ns", last < first ? 0 : last - first},
          {"left_out", left_out},
          {"shortest_ns", shortest},
          {"names", names.list()},
          {"ranks", std::move(list)}};
}

}  // namespace sidestream::page
