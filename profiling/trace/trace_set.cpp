#include "profiling/trace/trace_set.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/data/parallel_for.hpp"
#include "profiling/trace/base_time.hpp"
#include "profiling/trace/collective_link.hpp"
#include "profiling/trace/kineto_reader.hpp"
#include "profiling/trace/most_ranks.hpp"
#include "profiling/trace/nsys_reader.hpp"
#include "profiling/trace/time_windows.hpp"
#include "profiling/trace/utf8_repair.hpp"
#include "profiling/trace/way_on.hpp"

namespace sidestream::trace {
namespace {

struct Loaded {
  std::vector<RankTimeline> timelines;
  std::vector<std::string> warnings;
  bool has_rank = false;
  std::uint64_t events = 0;
  bool left_out = false;
};

Loaded load_one(const TraceFile& file) {
  Loaded loaded;
  if (file.kind == FileKind::kNsysReport) {
    throw core::DataError(core::FileFault{file.path.string(), std::nullopt, "a SQLite export",
                                          "a report: run `nsys export -t sqlite --lazy=false " +
                                              file.path.filename().string() + "` first"});
  }
  if (file.kind == FileKind::kNsysSqlite) {
    NsysFile nsys = read_nsys(file.path);
    loaded = {std::move(nsys.timelines), std::move(nsys.warnings), nsys.has_ranks, nsys.events};
  } else {
    KinetoFile kineto = read_kineto(file.path);
    loaded.has_rank = kineto.has_rank;
    loaded.warnings = std::move(kineto.warnings);
    if (const std::string& found = kineto.timeline.info.senseless_rank; !found.empty())
      loaded.warnings.push_back("distributedInfo: expected a rank from 0 to " +
                                std::to_string(kMostRanks - 1) + ", found " + found +
                                ": the name of the file says its rank, or its place among others");
    const RankInfo& info = kineto.timeline.info;
    if (kineto.has_rank && info.world_size > 0 && info.rank >= info.world_size)
      loaded.warnings.push_back("distributedInfo: rank " + std::to_string(info.rank) + " of " +
                                std::to_string(info.world_size) + ": one of both is wrong");
    loaded.events = kineto.events;
    loaded.timelines.push_back(std::move(kineto.timeline));
  }
  if (!loaded.timelines.empty()) {  // all of a file have the same
    if (auto warning = base_time_warning(loaded.timelines.front().info))
      loaded.warnings.push_back(std::move(*warning));
  }
  for (RankTimeline& timeline : loaded.timelines) {
    link_collectives(timeline);
    timeline.info.file = with_valid_utf8(file.path.filename().string());
    timeline.info.path = file.path.string();
    timeline.info.window = with_valid_utf8(file.window);
  }
  for (std::string& warning : loaded.warnings)
    warning = with_valid_utf8(file.path.filename().string()) + ": " + warning;
  return loaded;
}

bool is_merged(const Loaded& one) {
  return std::any_of(one.timelines.begin(), one.timelines.end(), [](const RankTimeline& timeline) {
    return timeline.info.figures.merged_ranks > 0;
  });
}

// What `merge` wrote beside the files that it was made of has their events once more: they would be
// those of a rank that there is not.
void leave_out_merged(std::vector<Loaded>& loaded) {
  if (std::all_of(loaded.begin(), loaded.end(), is_merged)) return;
  for (Loaded& one : loaded) {
    if (!is_merged(one)) continue;
    const std::string file = one.timelines.front().info.file;
    one = {.timelines = {},
           .warnings = {file + ": left out: `sidestream-trace merge` made it, of files such as "
                               "those beside it"},
           .left_out = true};
  }
}

// Numbers for traces that have none: the next one that no trace of the same folder or of the same
// time has.
class FreeRanks {
 public:
  void take(const RankTimeline& timeline) {
    taken_[timeline.info.rank].push_back({timeline.info.window, extent_of(timeline)});
  }

  int next_for(const RankTimeline& timeline) const {
    const Extent extent = extent_of(timeline);
    int rank = 0;
    for (auto at = taken_.find(rank); at != taken_.end(); at = taken_.find(++rank)) {
      const bool free = std::none_of(at->second.begin(), at->second.end(), [&](const Taken& one) {
        return one.window == timeline.info.window || one.extent.overlaps(extent);
      });
      if (free) break;
    }
    return rank;
  }

 private:
  struct Taken {
    std::string window;
    Extent extent;
  };
  std::map<int, std::vector<Taken>> taken_;
};

// Of the file itself, else of its name when it holds one rank.
bool find_rank(Loaded& one) {
  if (one.has_rank || one.timelines.size() != 1) return one.has_rank;
  const auto named = rank_in_name(one.timelines.front().info.file);
  if (named) one.timelines.front().info.rank = *named;
  return named.has_value();
}

void number_ranks(std::vector<Loaded>& loaded) {
  std::vector<RankTimeline*> named, nameless;
  for (Loaded& one : loaded) {
    auto& list = find_rank(one) ? named : nameless;
    for (RankTimeline& timeline : one.timelines) list.push_back(&timeline);
  }
  if (nameless.empty()) return;
  FreeRanks free;
  for (const RankTimeline* timeline : named) free.take(*timeline);
  std::map<std::pair<std::string, std::string>, int> of_worker;
  for (RankTimeline* timeline : nameless) {
    // A process that wrote several files is one rank.
    const std::string worker = worker_in_name(timeline->info.file);
    const auto known = of_worker.find({timeline->info.window, worker});
    if (!worker.empty() && known != of_worker.end()) {
      timeline->info.rank = known->second;
      continue;
    }
    timeline->info.rank = free.next_for(*timeline);
    free.take(*timeline);
    of_worker[{timeline->info.window, worker}] = timeline->info.rank;
  }
}

// Ranks that share a file share its threads and steps: no budget of one of them can be told.
void check_not_merged(const std::vector<RankTimeline>& timelines) {
  for (const RankTimeline& timeline : timelines) {
    const int ranks = timeline.info.figures.merged_ranks;
    if (ranks < 2) continue;
    throw core::DataError(core::FileFault{
        timeline.info.path, std::nullopt, "the trace of one rank",
        std::to_string(ranks) +
            " ranks that `sidestream-trace merge` put into one file, for Perfetto. Give the run "
            "directory, or the files that it was made of"});
  }
}

std::string list_of(const std::vector<int>& numbers) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return numbers.size() > kShown ? text + ", ..." : text;
}

void find_missing_ranks(TraceSet& set) {
  for (const RankTimeline& timeline : set.timelines)
    set.world_size = std::max({set.world_size, timeline.info.world_size, timeline.info.rank + 1});
  const std::vector<int> there = set.ranks();
  std::vector<int> missing;
  for (int rank = 0; rank < set.world_size; ++rank) {
    if (!std::binary_search(there.begin(), there.end(), rank)) missing.push_back(rank);
  }
  if (missing.empty()) return;
  set.warnings.push_back("no trace of " + std::to_string(missing.size()) + " of " +
                         std::to_string(set.world_size) + " ranks (" + list_of(missing) +
                         "): waiting in collectives is that of the others only");
}

// "none that can be used (3 without a time): "
std::string left_out_text(const TraceSet& set) {
  std::string text;
  for (const RankTimeline& timeline : set.timelines) {
    for (const auto& [reason, count] : timeline.skipped)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " left out: " + reason;
  }
  return text.empty() ? "" : "none that can be used (" + text + "); ";
}

// Files that can be read and say nothing: as bad as no files when all are like that.
void check_for_events(TraceSet& set) {
  std::vector<std::string> empty;
  for (const RankTimeline& timeline : set.timelines) {
    if (timeline.size() == 0) empty.push_back(timeline.info.file);
  }
  constexpr const char* kFound =
      "none: record with PyTorch's profiler, `sidestream train --profile` or Nsight Systems";
  if (empty.size() == set.timelines.size())
    throw core::DataError(
        core::FileFault{set.timelines.empty() ? "the traces" : set.timelines.front().info.path,
                        std::nullopt, "events of a profiler", left_out_text(set) + kFound});
  for (const std::string& file : empty)
    set.warnings.push_back(file + " has no event that a report could use");
}

// Each window has its own file; their samples are of the same clocks.
void add_samples(const TraceFile& file, std::set<std::string>& seen, TraceSet& set) {
  static constexpr const char* kName = "clock.json";
  const auto path = std::filesystem::absolute(file.path).parent_path() / kName;
  if (!seen.insert(path.string()).second) return;
  auto found = read_clock_samples(path);
  if (!found) return;
  if (!set.samples) set.samples.emplace();
  for (auto& [rank, samples] : *found) {
    RankSamples& into = (*set.samples)[rank];
    into.boot_id = samples.boot_id;
    into.pairs.insert(into.pairs.end(), samples.pairs.begin(), samples.pairs.end());
    into.round_trip_ns = std::max(into.round_trip_ns, samples.round_trip_ns);
  }
}

// Files of several folders have the same names.
bool are_of_several_folders(const std::vector<TraceFile>& files) {
  return std::any_of(files.begin(), files.end(),
                     [&](const TraceFile& file) { return file.window != files.front().window; });
}

}  // namespace

std::vector<int> TraceSet::ranks() const {
  std::set<int> ranks;
  for (const RankTimeline& timeline : timelines) ranks.insert(timeline.info.rank);
  return {ranks.begin(), ranks.end()};
}

TraceSet load_traces(const std::vector<TraceFile>& files, const LoadOptions& options) {
  const auto processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<Loaded> loaded(files.size());
  data::parallel_for({.count = files.size(),
                      .threads = options.threads > 0 ? options.threads : processors,
                      .thread_name = "ss-trace"},
                     [&](std::uint64_t index, int) {
                       with_way_on(files.size(), [&] { loaded[index] = load_one(files[index]); });
                     });
  leave_out_merged(loaded);
  number_ranks(loaded);
  TraceSet set;
  std::vector<std::string> warnings;
  const bool folders = are_of_several_folders(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    set.events += loaded[i].events;
    for (const std::string& warning : loaded[i].warnings)
      warnings.push_back((folders ? with_valid_utf8(files[i].window) + "/" : "") + warning);
    for (RankTimeline& timeline : loaded[i].timelines) set.timelines.push_back(std::move(timeline));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!loaded[i].left_out)
      set.files.push_back(with_valid_utf8(files[i].path.filename().string()));
  }
  std::set<std::string> seen;
  for (const TraceFile& file : files) add_samples(file, seen, set);
  check_not_merged(set.timelines);
  check_for_events(set);
  for (std::string& warning : separate_windows(set.timelines))
    set.warnings.push_back(std::move(warning));
  set.warnings.insert(set.warnings.end(), warnings.begin(), warnings.end());
  std::stable_sort(set.timelines.begin(), set.timelines.end(), [](const auto& a, const auto& b) {
    return std::tie(a.info.window, a.info.rank) < std::tie(b.info.window, b.info.rank);
  });
  find_missing_ranks(set);
  return set;
}

}  // namespace sidestream::trace
