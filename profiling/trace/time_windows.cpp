#include "profiling/trace/time_windows.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::trace {
namespace {

struct Trace {
  RankTimeline* timeline = nullptr;
  Extent extent;
};
using TracesOfRank = std::map<int, std::vector<Trace>>;  // by time

TracesOfRank by_rank(std::vector<RankTimeline>& timelines) {
  TracesOfRank of_rank;
  for (RankTimeline& timeline : timelines)
    of_rank[timeline.info.rank].push_back({&timeline, extent_of(timeline)});
  for (auto& [rank, traces] : of_rank) {
    std::stable_sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) {
      return a.extent.first_ns < b.extent.first_ns;
    });
  }
  return of_rank;
}

void check_disjoint(const TracesOfRank& of_rank) {
  for (const auto& [rank, traces] : of_rank) {
    for (std::size_t i = 0; i + 1 < traces.size(); ++i) {
      // Traces without work cannot be told apart by time: one of a folder is all there can be.
      const Extent &a = traces[i].extent, &b = traces[i + 1].extent;
      const bool empty = b.first_ns > b.last_ns;
      const RankInfo &before = traces[i].timeline->info, &after = traces[i + 1].timeline->info;
      if (empty ? before.window != after.window : b.first_ns >= a.last_ns) continue;
      throw core::DataError(core::FileFault{
          after.path, std::nullopt, "one trace for each rank and window",
          "rank " + std::to_string(rank) + " of the same time again, after " + before.path});
    }
  }
}

std::string numbered(const std::string& folder, std::size_t number, std::size_t count) {
  std::string text = std::to_string(number + 1);
  text.insert(0, std::to_string(count).size() - text.size(), '0');  // so that texts sort as numbers
  return folder + " " + text;
}

// The windows of a rank with fewer traces than there are windows: the nearest, in rising order.
std::vector<std::size_t> nearest_windows(const std::vector<Trace>& traces,
                                         const std::vector<Trace>& windows) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    std::size_t best = places.empty() ? 0 : places.back() + 1;
    const std::size_t last = windows.size() - (traces.size() - i);
    const auto distance = [&](std::size_t window) {
      return std::abs(windows[window].extent.first_ns - traces[i].extent.first_ns);
    };
    for (std::size_t window = best; window <= last; ++window) {
      if (distance(window) < distance(best)) best = window;
    }
    places.push_back(best);
  }
  return places;
}

// True: all ranks have the same number of windows.
bool number_folder(const std::string& folder, const TracesOfRank& of_rank) {
  const std::vector<Trace>* most = &of_rank.begin()->second;
  for (const auto& [rank, traces] : of_rank) {
    if (traces.size() > most->size()) most = &traces;
  }
  if (most->size() < 2) return true;
  bool complete = true;
  for (const auto& [rank, traces] : of_rank) {
    const auto places = nearest_windows(traces, *most);
    complete = complete && traces.size() == most->size();
    for (std::size_t i = 0; i < traces.size(); ++i)
      traces[i].timeline->info.window = numbered(folder, places[i], most->size());
  }
  return complete;
}

using Folders = std::map<std::string, TracesOfRank>;

Folders by_folder(const TracesOfRank& of_rank) {
  Folders folders;
  for (const auto& [rank, traces] : of_rank) {
    for (const Trace& one : traces) folders[one.timeline->info.window][rank].push_back(one);
  }
  return folders;
}

Extent extent_of(const TracesOfRank& folder) {
  Extent all;
  for (const auto& [rank, traces] : folder) {
    for (const Trace& one : traces) {
      all.first_ns = std::min(all.first_ns, one.extent.first_ns);
      all.last_ns = std::max(all.last_ns, one.extent.last_ns);
    }
  }
  return all;
}

// Folders of one time.
struct Group {
  std::vector<std::string> folders;
  TracesOfRank traces;
  Extent extent;
};

std::string name_of(const std::vector<std::string>& folders) {
  constexpr std::size_t kMostNames = 2;
  std::string name;
  for (std::size_t i = 0; i < std::min(folders.size(), kMostNames); ++i)
    name += (i == 0 ? "" : " + ") + folders[i];
  if (folders.size() > kMostNames)
    name += " + " + std::to_string(folders.size() - kMostNames) + " more";
  return name;
}

bool share_a_rank(const Group& a, const Group& b) {
  return std::any_of(a.traces.begin(), a.traces.end(),
                     [&](const auto& one) { return b.traces.contains(one.first); });
}

// What has no work by which to tell its time may be of any.
bool may_be_of_one_time(const Extent& a, const Extent& b) {
  return a.overlaps(b) || a.first_ns > a.last_ns || b.first_ns > b.last_ns;
}

std::vector<Group> groups_of(Folders folders) {
  std::vector<Group> groups;
  for (auto& [name, traces] : folders) groups.push_back({{name}, std::move(traces), Extent()});
  for (Group& group : groups) group.extent = extent_of(group.traces);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = i + 1; j < groups.size();) {
      Group &one = groups[i], &other = groups[j];
      if (share_a_rank(one, other) || !may_be_of_one_time(one.extent, other.extent)) {
        ++j;
        continue;
      }
      one.folders.push_back(other.folders.front());
      one.traces.merge(other.traces);
      one.extent = extent_of(one.traces);
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
      j = i + 1;  // those that were of another time may overlap both together
    }
  }
  return groups;
}

void warn_about_parts(const std::vector<Group>& groups, std::vector<std::string>& warnings) {
  std::vector<std::string> apart;
  for (const Group& group : groups) {
    if (std::any_of(groups.begin(), groups.end(), [&](const Group& other) {
          return &other != &group && !share_a_rank(group, other);
        }))
      apart.push_back(name_of(group.folders));
  }
  if (apart.empty()) return;
  warnings.push_back("the folders " + apart[0] + " and " +
                     (apart.size() == 2 ? apart[1] : std::to_string(apart.size() - 1) + " more") +
                     " hold different ranks at different times: no collective is matched between "
                     "them");
}

bool is_work_or_range(Kind kind) {
  return is_device_work(kind) || kind == Kind::kHostRange || kind == Kind::kUnfinished;
}

bool has_work_or_ranges(const RankTimeline& timeline) {
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (is_work_or_range(timeline.kind(row))) return true;
  }
  return false;
}

// Folders of other ranks at the same time are one.
Folders joined(Folders folders, std::vector<std::string>& warnings) {
  std::vector<Group> groups = groups_of(std::move(folders));
  warn_about_parts(groups, warnings);
  Folders whole;
  for (Group& group : groups) {
    const std::string name = name_of(group.folders);
    for (auto& [rank, traces] : group.traces) {
      for (const Trace& one : traces) one.timeline->info.window = name;
    }
    whole[name] = std::move(group.traces);
  }
  return whole;
}

}  // namespace

Extent extent_of(const RankTimeline& timeline) {
  const bool any_work = has_work_or_ranges(timeline);
  Extent extent;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    const bool call = kind == Kind::kOperator || kind == Kind::kRuntime;
    if (any_work ? !is_work_or_range(kind) : !call) continue;
    extent.first_ns = std::min(extent.first_ns, timeline.start_ns(row));
    extent.last_ns = std::max(extent.last_ns, timeline.end_ns(row));
  }
  if (extent.first_ns > extent.last_ns) return extent;
  return {extent.first_ns + timeline.info.base_ns, extent.last_ns + timeline.info.base_ns};
}

std::string worker_in_name(const std::string& file_name) {
  // Milliseconds in PyTorch 1.8 to 2.1, nanoseconds today.
  static const std::regex kHandler(R"((.+)\.\d{12,20}\.pt\.trace\.json(?:\.gz)?)");
  static const std::regex kStep(R"((|.*[^a-z])(step)[-_]?\d+((?:[^0-9].*)?\.json(?:\.gz)?))",
                                std::regex::icase);
  std::smatch match;
  if (std::regex_match(file_name, match, kHandler)) return match[1].str();
  if (!std::regex_match(file_name, match, kStep)) return "";
  return match[1].str() + match[2].str() + match[3].str();
}

std::vector<std::string> separate_windows(std::vector<RankTimeline>& timelines) {
  const TracesOfRank of_rank = by_rank(timelines);
  check_disjoint(of_rank);
  std::vector<std::string> warnings;
  for (const auto& [folder, ranks] : joined(by_folder(of_rank), warnings)) {
    if (number_folder(folder, ranks)) continue;
    warnings.push_back("ranks have different numbers of traces in " + folder +
                       ": windows are told apart by time");
  }
  return warnings;
}

}  // namespace sidestream::trace
