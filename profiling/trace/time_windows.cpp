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

bool share_a_rank(const TracesOfRank& a, const TracesOfRank& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one.first); });
}

// Each with those after it that have other ranks, at the same time.
Folders joined(Folders folders, std::vector<std::string>& warnings) {
  Folders whole;
  while (!folders.empty()) {
    auto first = folders.extract(folders.begin());
    std::string name = first.key();
    for (auto next = folders.begin(); next != folders.end();) {
      const bool others = !share_a_rank(first.mapped(), next->second);
      if (!others || !extent_of(first.mapped()).overlaps(extent_of(next->second))) {
        if (others)
          warnings.push_back("the folders " + first.key() + " and " + next->first +
                             " hold different ranks at different times: no collective is matched "
                             "between them");
        ++next;
        continue;
      }
      name += " + " + next->first;
      first.mapped().merge(next->second);
      next = folders.erase(next);
    }
    for (auto& [rank, traces] : first.mapped()) {
      for (const Trace& one : traces) one.timeline->info.window = name;
    }
    whole[name] = std::move(first.mapped());
  }
  return whole;
}

}  // namespace

Extent extent_of(const RankTimeline& timeline) {
  Extent extent;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (!is_device_work(kind) && kind != Kind::kHostRange && kind != Kind::kUnfinished) continue;
    extent.first_ns = std::min(extent.first_ns, timeline.start_ns(row));
    extent.last_ns = std::max(extent.last_ns, timeline.end_ns(row));
  }
  if (extent.first_ns > extent.last_ns) return extent;
  return {extent.first_ns + timeline.info.base_ns, extent.last_ns + timeline.info.base_ns};
}

std::string worker_in_name(const std::string& file_name) {
  // Milliseconds in PyTorch 1.8 to 2.1, nanoseconds today.
  static const std::regex kHandler(R"((.+)\.\d{12,20}\.pt\.trace\.json(?:\.gz)?)");
  std::smatch match;
  return std::regex_match(file_name, match, kHandler) ? match[1].str() : "";
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
