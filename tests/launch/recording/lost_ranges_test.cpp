// What reports make of a recording with less room than ranges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "launch/recording/recording_file.hpp"
#include "launch/recording/recording_losses.hpp"
#include "profiling/analysis/analysis.hpp"
#include "profiling/record/recorder.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using record::Recorder;

constexpr record::NameId kForward = record::id_of(ranges::Phase::kForward);
constexpr record::NameId kAllReduce = record::id_of(ranges::Phase::kAllReduce);
constexpr int kSteps = 20;
constexpr int kCollectives = 5;  // a step

// Rings with room for all of the first thread's ranges, and for the collectives of the last steps.
record::Recording recorded(Recorder& recorder) {
  std::barrier<> both(2);
  recorder.keep(record::Keeping::kOn);
  std::thread communication([&] {
    for (int step = 1; step <= kSteps; ++step) {
      both.arrive_and_wait();
      for (int i = 0; i < kCollectives; ++i) {
        const ranges::CollectivePayload payload{
            .bucket = i, .sequence = step * kCollectives + i, .bytes = 4096};
        recorder.end(recorder.start(kAllReduce, &payload));
      }
      both.arrive_and_wait();
    }
  });
  for (int step = 1; step <= kSteps; ++step) {
    recorder.push(record::kStepBit | static_cast<record::NameId>(step), nullptr);
    recorder.push(kForward, nullptr);
    recorder.pop();
    both.arrive_and_wait();
    both.arrive_and_wait();
    recorder.pop();
  }
  communication.join();
  return recorder.take();
}

TEST(LostRangesTest, steps_that_lack_ranges_are_in_no_figure_and_it_is_said) {
  constexpr std::size_t kRoom = 64;  // of 63 collectives: of 12 steps, and of a part of one
  Recorder recorder({.ranges_per_thread = kRoom});
  const record::Recording recording = recorded(recorder);
  const core::ScratchFolder scratch;
  const auto file = scratch.path() / "node0_00000.20.pt.trace.json.gz";
  write_recording(recording, recorder.names(), {},
                  {.rank = 0, .world_size = 1, .node = 0, .backend = "mpi", .process_id = 77}, {},
                  file);

  trace::TraceSet set = trace::load_traces(trace::find_traces({file}), {.threads = 1});
  const analysis::Analysis all = analysis::analyse(set, 1);

  EXPECT_EQ(set.timelines.at(0).info.dropped_ranges, recording.dropped);
  EXPECT_EQ(recording.dropped, kSteps * kCollectives - (kRoom - 1));
  for (const analysis::StepRow& step : all.ranks.at(0).steps)
    EXPECT_EQ(step.has_tag(analysis::StepRow::kIncomplete), *step.step <= 8) << *step.step;
  // Steps of microseconds: what else the machine does makes one of them long now and then.
  const auto outliers = static_cast<std::int64_t>(all.outliers.size());
  for (const analysis::CollectiveRow& row : all.collectives) EXPECT_EQ(row.count, 12 - outliers);
  ASSERT_EQ(set.warnings.size(), 1u);
  EXPECT_EQ(set.warnings[0],
            "37 ranges found no room in the recorder: steps before 9 are left out; "
            "--record-ranges 128 has room for them all");
}

TEST(LostSamplesTest, the_report_says_that_some_are_missing) {
  Recorder recorder;
  const record::Recording recording = recorded(recorder);
  const core::ScratchFolder scratch;
  const auto file = scratch.path() / "node0_00000.20.pt.trace.json.gz";
  write_recording(recording, recorder.names(), {.kept = {}, .dropped = 9},
                  {.rank = 0, .world_size = 1, .node = 0, .backend = "mpi", .process_id = 77}, {},
                  file);

  const trace::TraceSet set = trace::load_traces(trace::find_traces({file}), {.threads = 1});

  const auto& skipped = set.timelines.at(0).skipped;
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped.begin()->first, "sample of the system that found no room in the recorder");
  EXPECT_EQ(skipped.begin()->second, 9u);
}

TEST(RecordingLossesTest, what_was_lost_is_said_with_what_helps) {
  const RecordOptions options{.record = RecordedSteps::kAll, .sample_hz = 10};

  EXPECT_TRUE(warnings_of({}, options, 3).empty());
  EXPECT_THAT(
      warnings_of({.ranges = 5, .room_needed = 131072, .samples = 7}, options, 3),
      ::testing::ElementsAre(
          ::testing::AllOf(::testing::StartsWith("warning: 5 ranges of rank 3 found no room"),
                           ::testing::HasSubstr("--record-ranges 131072 (now 65536)")),
          ::testing::AllOf(::testing::StartsWith("warning: 7 samples of the system of rank 3"),
                           ::testing::HasSubstr("--sample-hz below 10"))));
}

}  // namespace
}  // namespace sidestream::launch
