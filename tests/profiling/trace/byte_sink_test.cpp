#include "profiling/trace/byte_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::trace {
namespace {

using ::testing::EndsWith;
using ::testing::UnorderedElementsAre;

// Whoever hands over a folder may have put links there, under every name that can be foreseen.
TEST(ByteSinkTest, planted_links_are_not_written_through) {
  const core::ScratchFolder scratch;
  core::write_file_atomically(scratch / "victim", "mine");
  for (const char* name : {"m.json", "m.json.partial", "m.json.tmp"})
    std::filesystem::create_symlink("victim", scratch / name);

  ByteSink sink(scratch / "m.json");
  sink.write("a trace");
  sink.finish();

  EXPECT_EQ(core::read_file(scratch / "victim"), "mine");
  EXPECT_FALSE(std::filesystem::is_symlink(scratch / "m.json"));
  EXPECT_EQ(core::read_file(scratch / "m.json"), "a trace");
}

TEST(ByteSinkTest, two_sinks_of_one_name_write_a_file_each) {
  const core::ScratchFolder scratch;
  const std::string long_text(std::size_t{1} << 20, 'a');

  ByteSink first(scratch / "m.json");
  ByteSink second(scratch / "m.json");
  first.write(long_text);
  second.write("short");
  second.finish();

  EXPECT_EQ(core::read_file(scratch / "m.json"), "short");
  first.finish();
  EXPECT_EQ(core::read_file(scratch / "m.json"), long_text);
  EXPECT_THAT(scratch.names(), UnorderedElementsAre("m.json"));
}

// By the ending those of killed runs are known.
TEST(ByteSinkTest, unfinished_file_has_an_ending_of_its_own_and_goes_with_the_sink) {
  const core::ScratchFolder scratch;
  {
    const ByteSink sink(scratch / "m.json.gz");
    EXPECT_THAT(scratch.names(), UnorderedElementsAre(EndsWith(".partial")));
  }
  EXPECT_TRUE(scratch.names().empty());
}

TEST(ByteSinkTest, absent_folder_is_named) {
  EXPECT_THROW(ByteSink("/nonexistent_folder/m.json"), core::Error);
}

}  // namespace
}  // namespace sidestream::trace
