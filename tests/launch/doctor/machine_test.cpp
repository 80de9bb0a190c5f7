#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/doctor/made_up_job.hpp"

namespace sidestream::launch::doctor {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(MemoryCheckTest, the_limit_of_the_container_counts) {
  JobFacts job = good_job();
  EXPECT_EQ(check_memory(job)->level, Level::kOk);

  for (RankFacts& rank : job.ranks) {
    rank.memory.limit_bytes = 3 * kGiB;
    rank.memory.limit_used_bytes = kGiB;
  }
  EXPECT_EQ(check_memory(job)->level, Level::kWarning);
  EXPECT_THAT(check_memory(job)->found,
              HasSubstr("2.0 GiB free: the control group allows 3.0 GiB"));

  for (RankFacts& rank : job.ranks) rank.memory.limit_used_bytes = 2500 * kMiB;
  EXPECT_EQ(check_memory(job)->level, Level::kError);
  EXPECT_THAT(check_memory(job)->expected, HasSubstr("1.0 GiB for 2 rank(s)"));
}

TEST(SharedMemoryCheckTest, what_a_container_gives_is_too_little) {
  JobFacts job = good_job();
  EXPECT_EQ(check_shared_memory(job)->level, Level::kOk);

  for (RankFacts& rank : job.ranks) rank.memory.shared_free_bytes = 64 * kMiB;

  EXPECT_EQ(check_shared_memory(job)->level, Level::kWarning);
  EXPECT_THAT(check_shared_memory(job)->found, HasSubstr("64 MiB free in /dev/shm"));
  EXPECT_THAT(check_shared_memory(job)->remedy, HasSubstr("--shm-size="));
}

TEST(HugePagesCheckTest, never_is_noted) {
  JobFacts job = good_job();
  EXPECT_EQ(check_huge_pages(job)->level, Level::kOk);
  for (RankFacts& rank : job.ranks) rank.memory.huge_pages = "never";
  EXPECT_EQ(check_huge_pages(job)->level, Level::kNote);
}

TEST(LimitsCheckTest, open_files_follow_the_number_of_ranks) {
  JobFacts job = good_job();
  EXPECT_EQ(check_open_files(job)->level, Level::kOk);

  job.ranks[1].limits.open_files = 256;
  EXPECT_EQ(check_open_files(job)->level, Level::kWarning);
  EXPECT_EQ(check_open_files(job)->where, "rank 1 on a");

  job.ranks[1].limits.open_files = 20;
  EXPECT_EQ(check_open_files(job)->level, Level::kError);
}

TEST(LimitsCheckTest, locked_memory_matters_where_an_adapter_reads_memory_itself) {
  JobFacts job = two_hosts();
  for (RankFacts& rank : job.ranks) rank.limits.locked_bytes = 64 << 10;
  EXPECT_EQ(check_locked_memory(job)->level, Level::kOk);

  for (RankFacts& rank : job.ranks) rank.network.remote_memory = true;

  EXPECT_EQ(check_locked_memory(job)->level, Level::kWarning);
  EXPECT_THAT(check_locked_memory(job)->found, HasSubstr("64 KiB may be locked"));
}

TEST(LimitsCheckTest, threads_file_sizes_and_address_space) {
  JobFacts job = good_job();
  EXPECT_EQ(check_tasks(job)->level, Level::kOk);
  EXPECT_EQ(check_file_size(job)->level, Level::kOk);
  EXPECT_FALSE(check_address_space(job).has_value());

  for (RankFacts& rank : job.ranks)
    rank.limits = {.file_bytes = kGiB, .address_bytes = 8 * kGiB, .tasks = 30};

  EXPECT_EQ(check_tasks(job)->level, Level::kWarning);
  EXPECT_EQ(check_file_size(job)->level, Level::kWarning);
  EXPECT_EQ(check_address_space(job)->level, Level::kWarning);
  for (RankFacts& rank : job.ranks) rank.limits.tasks = 5;
  EXPECT_EQ(check_tasks(job)->level, Level::kError);
}

TEST(BindingCheckTest, bare_mpirun_gives_a_rank_too_few_processors) {
  JobFacts job = good_job();
  EXPECT_EQ(check_binding(job)->level, Level::kOk);

  job.ranks[0].processor.allowed = {0};
  job.ranks[1].processor.allowed = {1};

  EXPECT_EQ(check_binding(job)->level, Level::kWarning);
  EXPECT_THAT(check_binding(job)->found, HasSubstr("may run on 2 of its 4 hardware threads"));
}

TEST(BindingCheckTest, more_ranks_than_processors_take_turns) {
  JobFacts job = good_job({"a", "a", "a", "a", "a"});

  EXPECT_EQ(check_binding(job)->level, Level::kWarning);
  EXPECT_THAT(check_binding(job)->expected, HasSubstr("take turns"));
}

TEST(BindingCheckTest, processors_that_overlap_in_part_are_named) {
  JobFacts job = good_job();
  job.ranks[0].processor.allowed = {0, 1, 2};
  job.ranks[1].processor.allowed = {2, 3};
  EXPECT_THAT(check_binding(job)->found, HasSubstr("ranks 0 and 1 on a"));
  EXPECT_THAT(check_binding(job)->found, HasSubstr("both to 2"));

  job.ranks[1].host = 1;  // the same numbers of two machines
  EXPECT_THAT(check_binding(job)->found, Not(HasSubstr("both to")));
}

TEST(ProcessorCheckTest, quota_load_and_clock_rate) {
  JobFacts job = good_job();
  EXPECT_FALSE(check_quota(job).has_value());
  EXPECT_FALSE(check_clock_rate(job).has_value());
  EXPECT_EQ(check_load(job)->level, Level::kOk);

  for (RankFacts& rank : job.ranks) {
    rank.processor.quota = 1.5;
    rank.processor.load = 3;
    rank.processor.governor = "powersave";
  }

  EXPECT_EQ(check_quota(job)->level, Level::kWarning);
  EXPECT_EQ(check_load(job)->level, Level::kNote);
  EXPECT_EQ(check_clock_rate(job)->level, Level::kNote);
}

TEST(ClocksCheckTest, hosts_three_seconds_apart_are_named) {
  JobFacts job = two_hosts();
  EXPECT_EQ(check_host_clocks(job)->level, Level::kOk);

  // What has to be added to the clock of b: it is ahead.
  job.clock_offsets_s = {0, 0, -3, -3};

  EXPECT_EQ(check_host_clocks(job)->level, Level::kWarning);
  EXPECT_EQ(check_host_clocks(job)->found, "the clock of b is 3.0 s ahead of that of a");
  EXPECT_FALSE(check_host_clocks(good_job()).has_value());
}

TEST(ClocksCheckTest, a_clock_that_needs_a_system_call_is_noted) {
  JobFacts job = good_job();
  EXPECT_EQ(check_clock_source(job)->level, Level::kOk);
  job.ranks[0].clock_source = "hpet";
  EXPECT_EQ(check_clock_source(job)->level, Level::kNote);
}

TEST(CeilingsCheckTest, what_was_not_measured_is_noted) {
  JobFacts job = good_job();
  EXPECT_EQ(check_ceilings(job)->level, Level::kOk);
  job.has_ceilings = false;
  EXPECT_THAT(check_ceilings(job)->remedy, HasSubstr("sidestream bench ceilings"));
}

}  // namespace
}  // namespace sidestream::launch::doctor
