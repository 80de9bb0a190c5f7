#include "profiling/trace/merge_metadata.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "profiling/ranges/trace_metadata.hpp"

namespace sidestream::trace {
namespace {

using Json = nlohmann::ordered_json;

Json clock_of(const TraceSet& set) {
  Json clock = {{"method", set.clock.method}, {"offset_us", Json::object()}};
  Json& offsets = clock["offset_us"];
  Json drifts = Json::object();
  for (const int rank : set.ranks()) {
    const RankClock of_rank = set.clock.of(rank);
    offsets[std::to_string(rank)] = static_cast<double>(of_rank.offset_ns) / 1000;
    drifts[std::to_string(rank)] = of_rank.drift_ppm;
  }
  clock["drift_ppm"] = std::move(drifts);
  if (set.clock.has_residual) {
    clock["residual_us_p50"] = set.clock.residual_us_p50;
    clock["residual_us_p95"] = set.clock.residual_us_p95;
  }
  return clock;
}

using Timelines = std::vector<const RankTimeline*>;

Timelines merged_timelines(const TraceSet& set, const std::vector<MergeCut>& cuts) {
  Timelines merged;
  for (std::size_t i = 0; i < set.timelines.size(); ++i) {
    if (!cuts[i].leave_out) merged.push_back(&set.timelines[i]);
  }
  return merged;
}

void set_figure(Json& object, std::string_view key, double value) {
  if (value > 0) object[std::string(key)] = value;
}

// Of the newest window: it knows most.
void add_figures(const RunFigures& figures, Json& own) {
  set_figure(own, ranges::kFlopsPerToken, figures.flops_per_token);
  set_figure(own, ranges::kFlopsPerTokenPalm, figures.flops_per_token_palm);
  set_figure(own, ranges::kTokensPerStep, figures.tokens_per_step);
  set_figure(own, ranges::kPeakFlopsPerSecond, figures.peak_flops_per_s);
  set_figure(own, ranges::kUnprofiledStepMilliseconds, figures.unprofiled_step_ms);
  set_figure(own, ranges::kUnprofiledStepDeviation, figures.unprofiled_step_deviation_ms);
  set_figure(own, ranges::kUnprofiledSteps, figures.unprofiled_steps);
  set_figure(own, ranges::kUnprofiledDataWait, figures.unprofiled_data_wait_ms);
  if (figures.profiled) own[std::string(ranges::kProfiled)] = *figures.profiled;
}

// Ranges and samples that found no room in any of the windows, and the time from which on none is
// missing in any of them, on the clock of the merged file.
void add_losses(const TraceSet& set, const Timelines& windows, Json& own) {
  std::uint64_t dropped = 0, room_needed = 0, dropped_samples = 0;
  std::optional<std::int64_t> complete_from_ns;
  bool known = true;
  for (const RankTimeline* window : windows) {
    const RankInfo& info = window->info;
    dropped += info.dropped_ranges;
    dropped_samples += info.dropped_samples;
    room_needed = std::max(room_needed, info.record_ranges_needed);
    known = known && (info.dropped_ranges == 0 || info.complete_from_ns.has_value());
    if (!info.complete_from_ns) continue;
    const std::int64_t common_ns = set.clock.of(info.rank).to_common(*info.complete_from_ns);
    complete_from_ns = std::max(complete_from_ns.value_or(common_ns), common_ns);
  }
  if (dropped > 0) own[std::string(ranges::kDroppedRanges)] = dropped;
  if (dropped_samples > 0) own[std::string(ranges::kDroppedSamples)] = dropped_samples;
  if (room_needed > 0) own[std::string(ranges::kRoomNeeded)] = room_needed;
  if (known && complete_from_ns) own[std::string(ranges::kCompleteFrom)] = *complete_from_ns;
}

Json device_list(const RankInfo& info) {
  Json list = Json::array();
  for (const auto& [number, device] : info.devices)
    list.push_back({{"id", number},
                    {"name", device.name},
                    {"numSms", device.sm_count},
                    {"computeMajor", device.compute_major},
                    {"computeMinor", device.compute_minor},
                    {"totalGlobalMem", device.memory_bytes}});
  return list;
}

void add_rank(const TraceSet& set, const Timelines& windows, Json& file, Json& own) {
  const RankInfo& info = windows.back()->info;
  file["distributedInfo"] = {{"rank", info.rank}, {"world_size", set.world_size}};
  if (!info.backend.empty()) file["distributedInfo"]["backend"] = info.backend;
  if (!info.devices.empty() || info.says_no_device) file["deviceProperties"] = device_list(info);
  add_figures(info.figures, own);
  add_losses(set, windows, own);
}

}  // namespace

std::string merge_metadata(const TraceSet& set, const std::vector<MergeCut>& cuts) {
  const Timelines merged = merged_timelines(set, cuts);
  std::set<int> ranks;
  for (const RankTimeline* one : merged) ranks.insert(one->info.rank);
  Json file = {{"clock", clock_of(set)}};
  Json own = {{std::string(ranges::kMergedRanks), ranks.size()}};
  if (ranks.size() == 1) add_rank(set, merged, file, own);
  file[std::string(ranges::kMetadataObject)] = std::move(own);
  const std::string text = file.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);  // without its braces
}

}  // namespace sidestream::trace
