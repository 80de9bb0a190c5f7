// Traces behind links: run/trace on another disk, "newest" beside what it points to.
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

std::string kernel_at(const std::string& time_us) {
  return test::trace_of(test::complete_event("kernel", "k", time_us, "1"));
}

TEST(LinkedFoldersTest, a_folder_behind_a_link_is_looked_into) {
  const core::ScratchFolder scratch;
  test::write_text(scratch / "disk" / "step_3" / "rank-0.json", kernel_at("1"));
  fs::create_directories(scratch / "run");
  fs::create_directory_symlink(scratch / "disk", scratch / "run" / "trace");

  const TraceSet set = load_traces(find_traces({scratch / "run"}));

  ASSERT_EQ(set.timelines.size(), 1u);
  EXPECT_EQ(set.timelines[0].info.window, "step_3");
}

TEST(LinkedFoldersTest, links_to_what_is_there_anyway_add_nothing) {
  const core::ScratchFolder scratch;
  const fs::path run = scratch / "run", disk = scratch / "disk";
  test::write_text(run / "step_3" / "rank-0.json", kernel_at("1"));
  test::write_text(disk / "step_9" / "rank-0.json", kernel_at("9"));
  fs::create_directory_symlink(run / "step_3", run / "newest");
  fs::create_directory_symlink(run, run / "step_3" / "up");
  fs::create_directory_symlink(disk, run / "one");
  fs::create_directory_symlink(disk, run / "other");
  fs::create_directory_symlink(disk, disk / "round");
  fs::create_symlink("loop", run / "loop");
  fs::create_symlink("nowhere", run / "broken");

  EXPECT_EQ(load_traces(find_traces({run})).timelines.size(), 2u);
}

}  // namespace
}  // namespace sidestream::trace
