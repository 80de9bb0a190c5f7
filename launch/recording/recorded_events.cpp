#include "launch/recording/recorded_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "launch/recording/json_text.hpp"
#include "profiling/ranges/system_counters.hpp"
#include "profiling/ranges/trace_metadata.hpp"
#include "profiling/trace/event_rewriter.hpp"
#include "profiling/trace/free_lane.hpp"

namespace sidestream::launch {
namespace {

using record::RangeRecord;
using trace::microseconds_text;

// Above every thread number of the system.
constexpr std::int64_t kFirstLane = 900'000'000;

// Operations that overlap get lanes of their own; in the order of their starts, each the first that
// is free.
std::vector<std::int64_t> lanes_of(const std::vector<RangeRecord>& flights) {
  std::vector<std::int64_t> lanes, free_from;
  for (const RangeRecord& range : flights) {
    const std::size_t lane = trace::take_lane(free_from, range.start_ns, range.end_ns);
    lanes.push_back(kFirstLane + static_cast<std::int64_t>(lane));
  }
  return lanes;
}

std::vector<RangeRecord> by_start(std::vector<RangeRecord> ranges) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const RangeRecord& a, const RangeRecord& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  return ranges;
}

// Our own keys, and those that readers of PyTorch's collectives look for. Bytes are counted as
// elements of one byte: the range does not know the type.
std::string collective_arguments(const std::string& name, const ranges::CollectivePayload& payload,
                                 const TraceOrigin& origin) {
  const bool gathers = name == "all_gather", scatters = name == "reduce_scatter";
  const std::int64_t out = gathers    ? payload.bytes * origin.world_size
                           : scatters ? payload.bytes / origin.world_size
                                      : payload.bytes;
  return fmt::format(
      R"("bucket":{},"sequence":{},"payload bytes":{},"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"dtype":"Byte","Group size":{})",
      payload.bucket, payload.sequence, payload.bytes, name, payload.bytes, out, origin.world_size);
}

class RangeWriter {
 public:
  RangeWriter(const record::NameTable& names, const TraceClock& clock, const TraceOrigin& origin,
              const TakeEvent& take)
      : names_(names), clock_(clock), origin_(origin), take_(take) {}

  void write(const RangeRecord& range, std::int64_t thread_id) const {
    const std::string name = names_.text(range.name);
    std::string arguments;
    if (range.has_payload) arguments = collective_arguments(name, range.payload, origin_);
    if (range.open)
      arguments += fmt::format(R"({}"{}":true)", arguments.empty() ? "" : ",", ranges::kOpen);
    take_(fmt::format(
        R"({{"ph":"X","cat":"user_annotation","name":{},"pid":{},"tid":{},"ts":{},"dur":{}{}}})",
        json_text(name), origin_.process_id, thread_id, clock_.text(range.start_ns),
        microseconds_text(clock_.realtime_between(range.start_ns, range.end_ns)),
        arguments.empty() ? "" : ",\"args\":{" + arguments + "}"));
  }

 private:
  const record::NameTable& names_;
  const TraceClock& clock_;
  const TraceOrigin& origin_;
  const TakeEvent& take_;
};

std::string metadata_event(const TraceOrigin& origin, std::string_view name, std::int64_t thread_id,
                           const std::string& arguments) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{{{}}}}})", name,
                     origin.process_id, thread_id, arguments);
}

}  // namespace

std::string TraceClock::text(std::int64_t monotonic_ns) const {
  return microseconds_text(wall.realtime_ns(monotonic_ns) - base_ns);
}

std::int64_t TraceClock::realtime_between(std::int64_t start_ns, std::int64_t end_ns) const {
  return wall.realtime_ns(end_ns) - wall.realtime_ns(start_ns);
}

void write_recorded_ranges(const record::Recording& recording, const record::NameTable& names,
                           const TraceClock& clock, const TraceOrigin& origin, StepRanges steps,
                           const TakeEvent& take) {
  const RangeWriter writer(names, clock, origin, take);
  for (const record::ThreadRanges& thread : recording.threads) {
    for (const RangeRecord& range : by_start(thread.ranges)) {
      if (steps == StepRanges::kLeftOut && record::is_step(range.name)) continue;
      writer.write(range, thread.thread_id);
    }
  }
  const std::vector<RangeRecord> flights = by_start(recording.in_flight);
  const std::vector<std::int64_t> lanes = lanes_of(flights);
  for (std::size_t i = 0; i < flights.size(); ++i) writer.write(flights[i], lanes[i]);
}

void write_counters(const std::vector<record::SystemSample>& samples, const TraceClock& clock,
                    const TraceOrigin& origin, const TakeEvent& take) {
  for (const record::SystemSample& sample : samples) {
    std::string values;
    for (const auto& [name, value] : sample.values)
      values += fmt::format("{}{}:{:.6g}", values.empty() ? "" : ",", json_text(name), value);
    take(fmt::format(R"({{"ph":"C","cat":"{}","name":{},"pid":{},"tid":0,"ts":{},"args":{{{}}}}})",
                     ranges::kSystemCategory, json_text(sample.name), origin.process_id,
                     clock.text(sample.monotonic_ns), values));
  }
}

void write_process_names(const TraceOrigin& origin, const TakeEvent& take) {
  take(metadata_event(origin, "process_name", 0, R"("name":"sidestream")"));
  take(metadata_event(origin, "process_labels", 0,
                      fmt::format(R"("labels":"rank {}")", origin.rank)));
  take(metadata_event(origin, "process_sort_index", 0,
                      fmt::format(R"("sort_index":{})", origin.rank)));
}

void write_thread_names(const record::Recording& recording, const TraceOrigin& origin,
                        const TakeEvent& take) {
  for (const record::ThreadRanges& thread : recording.threads) {
    const std::string name = fmt::format("thread {} ({})", thread.thread_id, thread.name);
    take(metadata_event(origin, "thread_name", thread.thread_id, "\"name\":" + json_text(name)));
    take(metadata_event(origin, "thread_sort_index", thread.thread_id,
                        fmt::format(R"("sort_index":{})", thread.thread_id)));
  }
  const std::vector<std::int64_t> lanes = lanes_of(by_start(recording.in_flight));
  if (lanes.empty()) return;
  for (std::int64_t lane = kFirstLane; lane <= *std::max_element(lanes.begin(), lanes.end());
       ++lane) {
    const std::string number = lane == kFirstLane ? "" : fmt::format(" {}", lane - kFirstLane + 1);
    take(metadata_event(origin, "thread_name", lane,
                        fmt::format(R"("name":"communication{}")", number)));
    take(
        metadata_event(origin, "thread_sort_index", lane, fmt::format(R"("sort_index":{})", lane)));
  }
}

std::string distributed_info_text(const TraceOrigin& origin) {
  // Spaces behind colons: some readers look for the rank with a pattern that wants one.
  return fmt::format(R"({{"backend": "{}", "rank": {}, "world_size": {}}})", origin.backend,
                     origin.rank, origin.world_size);
}

std::string metadata_text(const record::Recording& recording, std::uint64_t dropped_samples,
                          const trace::RunFigures& figures) {
  nlohmann::ordered_json object;
  const auto add = [&](std::string_view key, const auto& value) {
    object[std::string(key)] = value;
  };
  const auto add_known = [&](std::string_view key, double value) {
    if (value > 0) add(key, value);
  };
  const auto reading = [](const record::ClockReading& one) {
    return nlohmann::ordered_json{{std::string(ranges::kMonotonicNanoseconds), one.monotonic_ns},
                                  {std::string(ranges::kRealtimeNanoseconds), one.realtime_ns}};
  };
  add(ranges::kDroppedRanges, recording.dropped);
  if (dropped_samples > 0) add(ranges::kDroppedSamples, dropped_samples);
  if (recording.room_needed > 0) add(ranges::kRoomNeeded, recording.room_needed);
  if (recording.complete_from_ns) {
    const record::WallClock wall(recording.begin, recording.end);
    add(ranges::kCompleteFrom, wall.realtime_ns(*recording.complete_from_ns));
  }
  add(ranges::kClockBegin, reading(recording.begin));
  add(ranges::kClockEnd, reading(recording.end));
  add_known(ranges::kFlopsPerToken, figures.flops_per_token);
  add_known(ranges::kFlopsPerTokenPalm, figures.flops_per_token_palm);
  add_known(ranges::kTokensPerStep, figures.tokens_per_step);
  add_known(ranges::kPeakFlopsPerSecond, figures.peak_flops_per_s);
  add_known(ranges::kUnprofiledStepMilliseconds, figures.unprofiled_step_ms);
  add_known(ranges::kUnprofiledStepDeviation, figures.unprofiled_step_deviation_ms);
  add_known(ranges::kUnprofiledSteps, figures.unprofiled_steps);
  add_known(ranges::kUnprofiledDataWait, figures.unprofiled_data_wait_ms);
  if (figures.profiled) add(ranges::kProfiled, *figures.profiled);
  return object.dump();
}

}  // namespace sidestream::launch
