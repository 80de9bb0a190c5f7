// A recording, written and read back by the trace reader.
#include "launch/recording/recording_file.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/file.hpp"
#include "profiling/trace/kineto_reader.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using record::RangeRecord;

const TraceOrigin kOrigin{.rank = 1, .world_size = 2, .node = 0, .backend = {}, .process_id = 77};

const trace::RunFigures kFigures{.flops_per_token = 6e9,
                                 .flops_per_token_palm = 7e9,
                                 .tokens_per_step = 512,
                                 .unprofiled_step_ms = 12.5,
                                 .unprofiled_data_wait_ms = 3.5,
                                 .profiled = false};

RangeRecord range(std::int64_t start_ns, std::int64_t end_ns, record::NameId name) {
  RangeRecord record;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  record.name = name;
  return record;
}

record::Recording small_recording(record::NameTable& names) {
  record::Recording recording;
  recording.begin = {.monotonic_ns = 1'000, .realtime_ns = 1'700'000'000'000'001'000};
  recording.end = {.monotonic_ns = 101'000, .realtime_ns = 1'700'000'000'000'101'000};
  recording.step = 3;
  recording.threads.push_back(
      {.thread_id = 77,
       .name = "main",
       .ranges = {range(20'001, 30'002, record::id_of(ranges::Phase::kForward)),
                  range(25'000, 26'000, names.intern("h.0 \"quoted\"")),
                  range(10'000, 90'000, record::kStepBit | 3)}});
  RangeRecord flight = range(40'000, 60'000, record::id_of(ranges::Phase::kAllReduce));
  flight.has_payload = true;
  flight.in_flight = true;
  flight.payload = {.bucket = 2, .sequence = 9, .bytes = 4096};
  recording.in_flight.push_back(flight);
  flight.start_ns = 50'000;
  flight.open = true;
  recording.in_flight.push_back(flight);
  return recording;
}

class RecordingFileTest : public ::testing::Test {
 protected:
  trace::RankTimeline write_and_read(TraceOrigin origin) {
    const auto file = scratch_.path() / "node0_00001.3.pt.trace.json.gz";
    write_recording(small_recording(names_), names_,
                    {.kept = {{50'000, "memory [MiB]", {{"process", 12.5}}}}}, origin, kFigures,
                    file);
    trace::KinetoFile read = trace::read_kineto(file);
    has_rank_ = read.has_rank;
    return std::move(read.timeline);
  }

  core::ScratchFolder scratch_;
  record::NameTable names_;
  bool has_rank_ = false;
};

// The next file begins there: an overlap would look like the same time twice.
TEST_F(RecordingFileTest, anOpenRange_endsWithItsFileWhicheverClockRunsFaster) {
  record::Recording recording;
  recording.begin = {.monotonic_ns = 1'000, .realtime_ns = 1'700'000'000'000'001'000};
  recording.end = {.monotonic_ns = 5'000'001'000, .realtime_ns = 1'700'000'004'999'985'999};
  RangeRecord step = range(2'000, 5'000'001'000, record::kStepBit | 3);
  step.open = true;
  recording.threads.push_back({.thread_id = 77, .name = "main", .ranges = {step}});
  const auto file = scratch_.path() / "node0_00001.3.pt.trace.json.gz";

  write_recording(recording, names_, {}, kOrigin, kFigures, file);

  const trace::RankTimeline timeline = trace::read_kineto(file).timeline;
  ASSERT_EQ(timeline.size(), 1u);
  EXPECT_EQ(timeline.end_ns(0) + timeline.info.base_ns, recording.end.realtime_ns);
  EXPECT_EQ(timeline.kind(0), trace::Kind::kUnfinished);
}

// Somebody sets the clock back by an hour while ranges are recorded.
TEST_F(RecordingFileTest, timeOfDayThatIsSetBack_leavesOrderAndDurations) {
  record::Recording recording = small_recording(names_);
  recording.end.realtime_ns -= 3'600'000'000'000;
  const auto file = scratch_.path() / "node0_00001.3.pt.trace.json.gz";

  write_recording(recording, names_, {}, kOrigin, kFigures, file);

  const trace::RankTimeline timeline = trace::read_kineto(file).timeline;
  ASSERT_TRUE(timeline.skipped.empty());
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> times;
  for (std::size_t row = 0; row < timeline.size(); ++row)
    times[std::string(timeline.name(row))] = {timeline.start_ns(row), timeline.end_ns(row)};
  const auto [step_start, step_end] = times.at("ProfilerStep#3");
  const auto [forward_start, forward_end] = times.at("forward");
  EXPECT_EQ(step_end - step_start, 80'000);
  EXPECT_EQ(forward_end - forward_start, 10'001);
  EXPECT_EQ(forward_start - step_start, 10'001);
}

TEST_F(RecordingFileTest, ranges_comeBackToTheNanosecond) {
  TraceOrigin origin = kOrigin;
  origin.backend = "mpi";

  const trace::RankTimeline timeline = write_and_read(origin);

  EXPECT_TRUE(has_rank_);
  EXPECT_EQ(timeline.info.rank, 1);
  EXPECT_EQ(timeline.info.world_size, 2);
  EXPECT_TRUE(timeline.skipped.empty());
  ASSERT_EQ(timeline.size(), 5u);
  bool step = false, forward = false, layer = false;
  int collectives = 0;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const std::int64_t start = timeline.start_ns(row) + timeline.info.base_ns;
    if (timeline.name(row) == "ProfilerStep#3") {
      step = true;
      EXPECT_EQ(start, 1'700'000'000'000'010'000);
      EXPECT_EQ(timeline.end_ns(row) - timeline.start_ns(row), 80'000);
    } else if (timeline.name(row) == "forward") {
      forward = true;
      EXPECT_EQ(start, 1'700'000'000'000'020'001);
      EXPECT_EQ(timeline.end_ns(row) - timeline.start_ns(row), 10'001);
    } else if (timeline.name(row) == "h.0 \"quoted\"") {
      layer = true;
    } else if (timeline.name(row) == "allreduce") {
      ++collectives;
      ASSERT_NE(timeline.collective(row), nullptr);
      EXPECT_EQ(timeline.collective(row)->bucket, 2);
      EXPECT_EQ(timeline.collective(row)->sequence, 9);
      EXPECT_EQ(timeline.collective(row)->bytes, 4096);
    }
  }
  EXPECT_TRUE(step && forward && layer);
  EXPECT_EQ(collectives, 2);
}

TEST_F(RecordingFileTest, flightsThatOverlap_haveLanesOfTheirOwn) {
  const trace::RankTimeline timeline = write_and_read(kOrigin);

  std::set<std::uint32_t> tracks;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.name(row) == "allreduce") tracks.insert(timeline.track_of(row));
  }
  EXPECT_EQ(tracks.size(), 2u);
}

TEST_F(RecordingFileTest, figuresOfTheRun_comeBack) {
  const trace::RunFigures read = write_and_read(kOrigin).info.figures;

  EXPECT_EQ(read.flops_per_token, kFigures.flops_per_token);
  EXPECT_EQ(read.flops_per_token_palm, kFigures.flops_per_token_palm);
  EXPECT_EQ(read.tokens_per_step, kFigures.tokens_per_step);
  EXPECT_EQ(read.peak_flops_per_s, 0);  // not known: not written
  EXPECT_EQ(read.unprofiled_step_ms, kFigures.unprofiled_step_ms);
  EXPECT_EQ(read.unprofiled_data_wait_ms, kFigures.unprofiled_data_wait_ms);
  EXPECT_EQ(read.profiled, false);
}

TEST(TracePlaceTest, filesAreNeverOverwritten) {
  const core::ScratchFolder scratch;
  const TracePlace first = trace_place(scratch.path(), kOrigin, 12);
  std::filesystem::create_directories(first.folder);
  core::write_file_atomically(first.file, "x");

  const TracePlace second = trace_place(scratch.path(), kOrigin, 12);

  EXPECT_EQ(first.file, scratch.path() / "trace/step_00000012/node0_00001.12.pt.trace.json.gz");
  EXPECT_EQ(second.folder, scratch.path() / "trace/step_00000012-2");
  EXPECT_EQ(second.file.filename(), first.file.filename());
}

}  // namespace
}  // namespace sidestream::launch
