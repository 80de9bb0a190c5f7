// The same traces twice: behind links (run/trace on another disk, "newest" beside what it points
// to), and merged beside those that they were made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

namespace fs = std::filesystem;

std::string trace_of_kernel_at(const std::string& time_us) {
  return test::trace_of(test::complete_event("kernel", "k", time_us, "1"));
}

TEST(LinkedFoldersTest, a_folder_behind_a_link_is_looked_into) {
  const core::ScratchFolder scratch;
  test::write_text(scratch / "disk" / "step_3" / "rank-0.json", trace_of_kernel_at("1"));
  fs::create_directories(scratch / "run");
  fs::create_directory_symlink(scratch / "disk", scratch / "run" / "trace");

  const TraceSet set = load_traces(find_traces({scratch / "run"}));

  ASSERT_EQ(set.timelines.size(), 1u);
  EXPECT_EQ(set.timelines[0].info.window, "step_3");
}

TEST(LinkedFoldersTest, links_to_what_is_there_anyway_add_nothing) {
  const core::ScratchFolder scratch;
  const fs::path run = scratch / "run", disk = scratch / "disk";
  test::write_text(run / "step_3" / "rank-0.json", trace_of_kernel_at("1"));
  test::write_text(disk / "step_9" / "rank-0.json", trace_of_kernel_at("9"));
  fs::create_directory_symlink(run / "step_3", run / "newest");
  fs::create_directory_symlink(run, run / "step_3" / "up");
  fs::create_directory_symlink(disk, run / "one");
  fs::create_directory_symlink(disk, run / "other");
  fs::create_directory_symlink(disk, disk / "round");
  fs::create_symlink("loop", run / "loop");
  fs::create_symlink("nowhere", run / "broken");

  EXPECT_EQ(load_traces(find_traces({run})).timelines.size(), 2u);
}

TEST(MergedFilesTest, one_beside_those_it_was_made_of_is_no_rank) {
  const core::ScratchFolder scratch;
  const std::string events = test::complete_event("kernel", "k", "1", "1");
  std::string merged = test::trace_of(events);
  merged.insert(1, R"("sidestream":{"merged_ranks":1},)");
  test::write_text(scratch / "m.pt.trace.json", merged);
  const auto load = [&] { return load_traces(find_traces({scratch.path()})); };
  EXPECT_THAT(load().warnings, ::testing::IsEmpty()) << "alone it can be read";

  test::write_text(scratch / "vm_7.123.pt.trace.json", R"({"traceEvents":[)" + events + "]}");
  const TraceSet set = load();

  EXPECT_EQ(set.world_size, 1);
  EXPECT_EQ(set.events, 1u);
  EXPECT_THAT(set.files, ::testing::ElementsAre("vm_7.123.pt.trace.json"));
  EXPECT_THAT(set.warnings, ::testing::Contains(::testing::HasSubstr("m.pt.trace.json: left out")));
}

}  // namespace
}  // namespace sidestream::trace
