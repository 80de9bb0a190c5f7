// Traces of one time in a folder for each rank or node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

class WindowFoldersTest : public ::testing::Test {
 protected:
  // Work of `rank` from `start` to 9 us later, in microseconds.
  void write(const std::string& folder, int rank, int start) {
    test::write_text(scratch_ / folder / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(test::complete_event("kernel", "k", std::to_string(start), "9"),
                                    rank, /*world_size=*/4));
  }
  // Two operators of a processor, and no rank.
  void write_operators(const std::string& file, int start) {
    test::write_text(
        scratch_ / file,
        R"({"traceEvents":[)" +
            test::complete_event("cpu_op", "aten::mm", std::to_string(start), "5") + "," +
            test::complete_event("cpu_op", "aten::add", std::to_string(start + 5), "4") + "]}");
  }
  TraceSet load() { return load_traces(find_traces({scratch_.path()})); }

  static std::set<std::string> windows(const TraceSet& set) {
    std::set<std::string> names;
    for (const RankTimeline& timeline : set.timelines) names.insert(timeline.info.window);
    return names;
  }

  core::ScratchFolder scratch_;
};

TEST_F(WindowFoldersTest, folders_of_different_ranks_at_one_time_are_one_window) {
  write("node0", 0, 10);
  write("node0", 1, 11);
  write("node1", 2, 12);
  write("node1", 3, 13);

  const TraceSet set = load();

  EXPECT_THAT(windows(set), ElementsAre("node0 + node1"));
  EXPECT_THAT(set.ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(set.warnings, IsEmpty());
}

TEST_F(WindowFoldersTest, many_folders_have_a_short_name_and_one_warning) {
  for (int rank = 0; rank < 4; ++rank) write("n" + std::to_string(rank), rank, 10);
  EXPECT_THAT(windows(load()), ElementsAre("n0 + n1 + 2 more"));

  for (int rank = 0; rank < 4; ++rank) write("n" + std::to_string(rank), rank, 10 + 50 * rank);
  const TraceSet apart = load();
  EXPECT_THAT(windows(apart), ElementsAre("n0", "n1", "n2", "n3"));
  EXPECT_THAT(apart.warnings, ElementsAre(HasSubstr("the folders n0 and 3 more hold")));
}

// The second lies between the others in time, by name it does not.
TEST_F(WindowFoldersTest, folders_that_a_third_one_joins_are_one_window) {
  write("a", 0, 10);
  write("b", 1, 26);
  write("c", 2, 18);

  EXPECT_THAT(windows(load()), ElementsAre("a + c + 1 more"));
}

TEST_F(WindowFoldersTest, several_windows_in_a_folder_for_each_rank_are_numbered_by_time) {
  for (int rank = 0; rank < 2; ++rank) {
    const std::string folder = "rank" + std::to_string(rank) + "/";
    for (const int start : {10, 50}) {
      test::write_text(
          scratch_ / (folder + std::to_string(start) + ".pt.trace.json"),
          test::trace_of(test::complete_event("kernel", "k", std::to_string(start + rank), "9"),
                         rank, 2));
    }
  }

  EXPECT_THAT(windows(load()), ElementsAre("rank0 + rank1 1", "rank0 + rank1 2"));
}

TEST_F(WindowFoldersTest, windows_with_nothing_but_operators_are_told_apart_by_time) {
  write_operators("flat/host_77.1700000000001.pt.trace.json", 10);
  write_operators("flat/host_77.1700000000002.pt.trace.json", 50);

  const TraceSet set = load();

  EXPECT_THAT(windows(set), ElementsAre("flat 1", "flat 2"));
  EXPECT_THAT(set.ranks(), ElementsAre(0));
}

TEST_F(WindowFoldersTest, files_named_after_steps_are_windows_of_one_rank) {
  write_operators("flat/step_00010.json", 10);
  write_operators("flat/step_00020.json", 50);

  const TraceSet set = load();

  EXPECT_THAT(windows(set), ElementsAre("flat 1", "flat 2"));
  EXPECT_THAT(set.ranks(), ElementsAre(0));
}

TEST_F(WindowFoldersTest, folders_with_nothing_but_operators_of_one_time_are_two_ranks) {
  write_operators("node0/trace.json", 10);
  write_operators("node1/trace.json", 12);

  const TraceSet set = load();

  EXPECT_THAT(windows(set), ElementsAre("node0 + node1"));
  EXPECT_THAT(set.ranks(), ElementsAre(0, 1));
}

TEST_F(WindowFoldersTest, folders_of_the_same_ranks_are_windows_of_their_own) {
  for (const int rank : {0, 1, 2, 3}) {
    write("step_1", rank, 10);
    write("step_9", rank, 50);
  }

  EXPECT_THAT(windows(load()), ElementsAre("step_1", "step_9"));
}

TEST_F(WindowFoldersTest, different_ranks_at_different_times_are_told) {
  for (const int rank : {0, 1}) write("a", rank, 10);
  for (const int rank : {2, 3}) write("b", rank, 50);

  const TraceSet set = load();

  EXPECT_THAT(windows(set), ElementsAre("a", "b"));
  EXPECT_THAT(set.warnings,
              ElementsAre(HasSubstr("a and b hold different ranks at different times")));
}

}  // namespace
}  // namespace sidestream::trace
