#include "launch/recording/clock_file.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/sha256.hpp"
#include "profiling/statistics/median.hpp"
#include "profiling/trace/clock_fit.hpp"
#include "profiling/trace/shorter_half.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

constexpr int kSamples = 24;

// A fingerprint of the boot: equal on ranks that share a clock, and of no use to anyone else.
std::string boot_fingerprint() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  if (id.empty()) return "";
  core::Sha256 hash;
  hash.update(std::as_bytes(std::span(id)));
  return hash.finish().substr(0, 16);
}

json to_json(const ClockNotes& notes) {
  json barriers = json::array(), readings = json::array();
  for (const BarrierTimes& one : notes.barriers) barriers.push_back({one.enter_ns, one.leave_ns});
  for (const auto& one : notes.readings) readings.push_back({one.monotonic_ns, one.realtime_ns});
  return {{"barriers", barriers}, {"readings", readings}};
}

ClockNotes notes_from(const json& value) {
  ClockNotes notes;
  for (const json& one : value.at("barriers")) notes.barriers.push_back({one.at(0), one.at(1)});
  for (const json& one : value.at("readings")) notes.readings.push_back({one.at(0), one.at(1)});
  return notes;
}

struct RankSample {
  std::int64_t local_ns, reference_ns, round_trip_ns;
};

std::vector<RankSample> samples_of(const ClockNotes& rank, const ClockNotes& reference) {
  std::vector<RankSample> samples;
  for (std::size_t i = 0; i < std::min(rank.barriers.size(), reference.barriers.size()); ++i) {
    const BarrierTimes mine = rank.barriers[i], zero = reference.barriers[i];
    samples.push_back({mine.enter_ns + (mine.leave_ns - mine.enter_ns) / 2,
                       zero.enter_ns + (zero.leave_ns - zero.enter_ns) / 2,
                       (mine.leave_ns - mine.enter_ns) + (zero.leave_ns - zero.enter_ns)});
  }
  return samples;
}

// Offset, drift and what the shorter half of the samples misses them by.
void add_fit(json& rank, std::vector<RankSample> samples) {
  trace::keep_shorter_half(samples);
  std::vector<trace::ClockPair> pairs;
  for (const RankSample& one : samples) pairs.push_back({one.local_ns, one.reference_ns});
  const trace::ClockFit fit = trace::fit_clock(pairs);
  std::vector<double> residuals_us;
  for (const trace::ClockPair& pair : pairs) {
    residuals_us.push_back(
        std::abs(static_cast<double>(fit.clock.to_common(pair.time_ns) - pair.reference_ns)) /
        1000);
  }
  rank["offset_us"] = static_cast<double>(fit.clock.offset_ns) / 1000;
  rank["drift_ppm"] = fit.clock.drift_ppm;
  rank["residual_us_p50"] = statistics::quantile(residuals_us, 0.5);
  rank["residual_us_p95"] = statistics::quantile(residuals_us, 0.95);
}

json rank_json(const ClockNotes& notes, const ClockNotes& reference, int rank,
               const std::string& boot, bool shares_clock) {
  json result = {{"rank", rank}, {"boot_id", boot}};
  json samples = json::array(), pairs = json::array();
  const std::vector<RankSample> found = samples_of(notes, reference);
  for (const RankSample& one : found) {
    samples.push_back({{"local_ns", one.local_ns},
                       {"reference_ns", one.reference_ns},
                       {"round_trip_ns", one.round_trip_ns}});
  }
  for (const auto& one : notes.readings)
    pairs.push_back({{"monotonic_ns", one.monotonic_ns}, {"realtime_ns", one.realtime_ns}});
  result["samples"] = std::move(samples);
  result["pairs"] = std::move(pairs);
  // One clock: nothing to fit, and nothing that a fit could miss.
  if (shares_clock) {
    for (const char* key : {"offset_us", "drift_ppm", "residual_us_p50", "residual_us_p95"})
      result[key] = 0;
  } else if (!found.empty()) {
    add_fit(result, found);
  }
  return result;
}

}  // namespace

void sample_clocks(comm::Communicator& communicator, ClockNotes& notes) {
  notes.readings.push_back(record::read_clocks());
  if (communicator.size() == 1) return;
  for (int i = 0; i <= kSamples; ++i) {
    BarrierTimes times{.enter_ns = record::realtime_ns()};
    communicator.barrier();
    times.leave_ns = record::realtime_ns();
    if (i > 0) notes.barriers.push_back(times);  // the first waits for whoever is late
  }
}

std::string gather_clock_text(comm::Communicator& communicator, const ClockNotes& notes) {
  json mine = to_json(notes);
  mine["boot"] = boot_fingerprint();
  const std::vector<std::string> all =
      communicator.exchange(mine.dump(), {.purpose = "clock notes"});
  if (communicator.rank() != 0) return "";
  std::vector<ClockNotes> ranks;
  std::vector<std::string> boots;
  for (const std::string& one : all) {
    const json parsed = json::parse(one);
    ranks.push_back(notes_from(parsed));
    boots.push_back(parsed.at("boot"));
  }
  return clock_text(ranks, boots);
}

std::string clock_text(const std::vector<ClockNotes>& ranks,
                       const std::vector<std::string>& boots) {
  json result = {{"schema", 1}, {"ranks", json::array()}};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const bool shares_clock = !boots[rank].empty() && boots[rank] == boots[0];
    result["ranks"].push_back(
        rank_json(ranks[rank], ranks[0], static_cast<int>(rank), boots[rank], shares_clock));
  }
  return result.dump(1) + "\n";
}

}  // namespace sidestream::launch
