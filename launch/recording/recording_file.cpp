#include "launch/recording/recording_file.hpp"

#include <fmt/format.h>

#include "launch/recording/recorded_events.hpp"
#include "profiling/ranges/trace_metadata.hpp"
#include "profiling/trace/event_list.hpp"

namespace sidestream::launch {
namespace {

// All files of a run have one base, and it is Kineto's: realtime rounded down to a quarter of a
// year.
std::int64_t base_of(std::int64_t realtime_ns) {
  constexpr std::int64_t kQuarterNs = 7'889'238'000'000'000;
  return realtime_ns - realtime_ns % kQuarterNs;
}

}  // namespace

void write_recording(const record::Recording& recording, const record::NameTable& names,
                     const record::SystemSamples& samples, const TraceOrigin& origin,
                     const trace::RunFigures& figures, const std::filesystem::path& file) {
  const TraceClock clock{record::WallClock(recording.begin, recording.end),
                         base_of(recording.begin.realtime_ns)};
  trace::ByteSink sink(file);
  sink.write(fmt::format(
      R"({{"schemaVersion":1,"deviceProperties":[],"distributedInfo":{},"displayTimeUnit":"ms","baseTimeNanoseconds":{},"{}":{},"traceEvents":[)",
      distributed_info_text(origin), clock.base_ns, ranges::kMetadataObject,
      metadata_text(recording, samples.dropped, figures)));
  trace::EventList events(sink);
  const TakeEvent take = [&](std::string_view event) { events.add(event); };
  write_process_names(origin, take);
  write_thread_names(recording, origin, take);
  write_recorded_ranges(recording, names, clock, origin, StepRanges::kWritten, take);
  write_counters(samples.kept, clock, origin, take);
  events.flush();
  sink.write("\n]}\n");
  sink.finish();
}

}  // namespace sidestream::launch
