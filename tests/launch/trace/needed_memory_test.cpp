#include "launch/trace/needed_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGigabyte = 1'000'000'000;
constexpr core::HostMemory kFourFree = {.total_bytes = 8 * kGigabyte,
                                        .available_bytes = 4 * kGigabyte};

class NeededMemoryTest : public testing::Test {
 protected:
  // Has a length and takes no room on the disk.
  trace::TraceFile file(const std::string& name, std::int64_t bytes) {
    const std::filesystem::path path = scratch_ / name;
    std::ofstream(path).close();
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes));
    return {.path = path, .window = {}};
  }
  core::ScratchFolder scratch_;
};

TEST_F(NeededMemoryTest, more_events_than_memory_is_said_before_they_are_read) {
  const auto warning = memory_warning(
      {file("rank-0.json", 5 * kGigabyte), file("rank-1.json", 5 * kGigabyte)}, kFourFree);

  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("2 files take 6 GB of memory or more, and 4 GB are free"));
  EXPECT_THAT(*warning, HasSubstr("fewer ranks"));
}

TEST_F(NeededMemoryTest, a_packed_file_counts_for_what_it_unpacks_to) {
  EXPECT_TRUE(memory_warning({file("rank-0.json.gz", kGigabyte)}, kFourFree));
  EXPECT_FALSE(memory_warning({file("rank-0.json", kGigabyte)}, kFourFree));
}

TEST_F(NeededMemoryTest, a_database_is_not_read_whole) {
  trace::TraceFile database = file("rank-0.sqlite", 100 * kGigabyte);
  database.kind = trace::FileKind::kNsysSqlite;

  EXPECT_FALSE(memory_warning({database}, kFourFree));
  EXPECT_TRUE(memory_warning({database, file("rank-1.json", 7 * kGigabyte)}, kFourFree));
}

TEST_F(NeededMemoryTest, a_control_group_leaves_less_than_the_machine_has) {
  core::HostMemory memory = kFourFree;
  memory.limit_bytes = kGigabyte / 2;
  EXPECT_TRUE(memory_warning({file("rank-0.json", kGigabyte)}, memory));
}

TEST_F(NeededMemoryTest, nothing_is_said_where_nobody_knows) {
  EXPECT_FALSE(memory_warning({file("rank-0.json", 100 * kGigabyte)}, {}));
  EXPECT_FALSE(memory_warning({{.path = scratch_ / "gone.json", .window = {}}}, kFourFree));
}

}  // namespace
}  // namespace sidestream::launch
