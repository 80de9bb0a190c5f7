#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/doctor/expected_link.hpp"
#include "tests/launch/doctor/made_up_job.hpp"

namespace sidestream::launch::doctor {
namespace {

using ::testing::HasSubstr;

TEST(StorageCheckTest, what_the_system_refuses_stops_the_job) {
  JobFacts job = good_job();
  EXPECT_EQ(check_writing(job)->level, Level::kOk);

  job.ranks[0].storage.problem = "cannot create a file in /runs: Read-only file system";

  EXPECT_EQ(check_writing(job)->level, Level::kError);
  EXPECT_THAT(check_writing(job)->found, HasSubstr("Read-only"));
}

TEST(StorageCheckTest, a_slow_fsync_is_a_warning_and_a_folder_that_does_not_last_a_note) {
  JobFacts job = good_job();
  job.ranks[0].storage.fsync_s = 0.8;
  EXPECT_EQ(check_writing(job)->level, Level::kWarning);
  EXPECT_THAT(check_writing(job)->found, HasSubstr("fsync 800.0 ms"));

  job = good_job();
  job.ranks[0].storage.bytes_per_s = 10e6;  // 1.5 GB take 150 s
  EXPECT_EQ(check_writing(job)->level, Level::kWarning);

  job = good_job();
  job.ranks[0].storage.filesystem = "tmpfs";
  EXPECT_EQ(check_writing(job)->level, Level::kNote);
}

TEST(StorageCheckTest, room_for_checkpoints) {
  JobFacts job = good_job();
  EXPECT_EQ(check_disk_space(job)->level, Level::kOk);
  job.ranks[0].storage.free_bytes = 2 * kGiB;
  EXPECT_EQ(check_disk_space(job)->level, Level::kWarning);
  job.ranks[0].storage.free_bytes = 1 << 20;
  EXPECT_EQ(check_disk_space(job)->level, Level::kError);
}

TEST(StorageCheckTest, hosts_have_to_see_the_same_folder) {
  JobFacts job = two_hosts();
  EXPECT_EQ(check_same_folder(job)->level, Level::kOk);
  job.ranks[2].storage.sees_first = false;
  EXPECT_EQ(check_same_folder(job)->level, Level::kError);
  job.ranks[0].storage.problem = "Read-only file system";  // then nothing was written there
  EXPECT_EQ(check_same_folder(job)->level, Level::kOk);
  EXPECT_FALSE(check_same_folder(good_job()).has_value());
}

TEST(RanksCheckTest, a_single_process_says_what_was_not_tried) {
  JobFacts job = good_job({"a"});
  job.host_link.reset();

  EXPECT_EQ(check_ranks(job)->level, Level::kNote);
  EXPECT_THAT(check_ranks(job)->remedy, HasSubstr("launch/run -np N -- doctor"));
  EXPECT_FALSE(check_all_reduce(job).has_value());
}

TEST(RanksCheckTest, a_wrong_sum_stops_the_job) {
  JobFacts job = good_job();
  EXPECT_EQ(check_ranks(job)->level, Level::kOk);

  job.host_link->problem = "rank 1 on a: the sum of all ranks is wrong at element 0";

  EXPECT_EQ(check_ranks(job)->level, Level::kError);
  EXPECT_FALSE(check_all_reduce(job).has_value());
}

TEST(AllReduceCheckTest, on_a_host_memory_says_what_to_expect) {
  JobFacts job = good_job();

  // Two ranks copy at 20 GB/s together: a quarter of it.
  EXPECT_DOUBLE_EQ(expected_host_link(job).bus_bytes_per_s, 5e9);
  EXPECT_EQ(check_all_reduce(job)->level, Level::kOk);

  job.host_link->bus_bytes_per_s = 1e9;
  EXPECT_EQ(check_all_reduce(job)->level, Level::kWarning);
  EXPECT_THAT(check_all_reduce(job)->remedy, HasSubstr("/dev/shm"));
}

TEST(AllReduceCheckTest, between_hosts_the_slowest_link_does) {
  JobFacts job = two_hosts();
  job.ranks[2].network = {.fastest = "eth1", .bytes_per_s = 0.125e9};

  // Each of two hosts sends as much as the vector has; 4 ranks count 1.5 times that.
  EXPECT_DOUBLE_EQ(expected_host_link(job).bus_bytes_per_s, 1.5 * 0.125e9);
  EXPECT_THAT(expected_host_link(job).from, HasSubstr("eth1"));

  job.ranks[0].network = {};
  EXPECT_EQ(check_all_reduce(job)->level, Level::kNote);  // not judged
}

TEST(AllReduceCheckTest, of_gpus_is_judged_by_the_bus_where_it_was_measured) {
  JobFacts job = with_gpus(good_job());
  job.gpu_link = LinkFacts{.backend = "nccl", .barrier_s = 1e-5, .bus_bytes_per_s = 5e9};
  EXPECT_EQ(check_gpu_all_reduce(job)->level, Level::kNote);

  job.pcie_bytes_per_s = 50e9;
  EXPECT_EQ(check_gpu_all_reduce(job)->level, Level::kWarning);
  job.gpu_link->bus_bytes_per_s = 200e9;
  EXPECT_EQ(check_gpu_all_reduce(job)->level, Level::kOk);

  job.gpu_link->problem = "ncclSystemError";
  EXPECT_EQ(check_gpu_ranks(job)->level, Level::kError);
}

TEST(AllReduceCheckTest, of_gpus_behind_a_switch_is_judged_by_the_slowest_ones_links) {
  JobFacts job = with_gpus(good_job());
  job.pcie_bytes_per_s = 50e9;
  job.gpu_link = LinkFacts{.backend = "nccl", .barrier_s = 1e-5, .bus_bytes_per_s = 300e9};
  job.ranks[0].gpu.links.switch_bytes_per_s = 478e9;
  EXPECT_DOUBLE_EQ(expected_gpu_link(job).bus_bytes_per_s, 50e9);  // the other has none

  job.ranks[1].gpu.links.switch_bytes_per_s = 450e9;
  EXPECT_DOUBLE_EQ(expected_gpu_link(job).bus_bytes_per_s, 450e9);
  EXPECT_EQ(check_gpu_all_reduce(job)->level, Level::kOk);

  job.gpu_link->bus_bytes_per_s = 40e9;  // what the PCI bus would do
  EXPECT_EQ(check_gpu_all_reduce(job)->level, Level::kWarning);
  EXPECT_THAT(check_gpu_all_reduce(job)->expected, HasSubstr("NVLinks of 450.0 GB/s"));
}

TEST(AllReduceCheckTest, bridges_count_where_they_join_all_gpus_of_the_job) {
  JobFacts job = with_gpus(good_job());
  job.ranks[0].gpu.links = {.bus_id = "A", .to = {{"B", 100e9}, {"C", 50e9}}};
  job.ranks[1].gpu.links = {.bus_id = "B", .to = {{"A", 100e9}}};
  EXPECT_DOUBLE_EQ(expected_gpu_link(job).bus_bytes_per_s, 100e9);

  job.ranks.push_back(job.ranks[0]);
  job.ranks[2].gpu.links = {.bus_id = "C", .to = {{"A", 50e9}}};
  EXPECT_DOUBLE_EQ(expected_gpu_link(job).bus_bytes_per_s, 0);  // B and C: the bus, not measured
}

TEST(RankFactsTest, links_of_a_gpu_reach_the_other_ranks) {
  RankFacts rank = good_rank();
  rank.gpu.links = {.bus_id = "A", .switch_bytes_per_s = 1, .to = {{"B", 2}}};

  const RankFacts read = RankFacts::from_text(rank.to_text());

  EXPECT_EQ(read.gpu.links.bus_id, "A");
  EXPECT_EQ(read.gpu.links.switch_bytes_per_s, 1);
  EXPECT_EQ(read.gpu.links.to, rank.gpu.links.to);
}

TEST(AllChecksTest, on_a_good_machine_nothing_is_above_a_note) {
  for (const JobFacts& job : {good_job(), two_hosts(), with_gpus(good_job())}) {
    for (const Finding& finding : judge(job)) {
      EXPECT_LE(finding.level, Level::kNote) << finding.name << ": " << finding.found;
    }
  }
}

// What is not as it should be always comes with a remedy, also on a machine where nothing is.
TEST(AllChecksTest, every_finding_has_an_expectation_and_a_remedy) {
  JobFacts job = two_hosts();
  job.ranks.assign(job.ranks.size(), RankFacts{});
  job.ranks[3].storage = {.probed = true};
  job.ranks[0].storage = {.probed = true, .problem = "refused"};
  job.ranks[0].program.sha256 = "aa";
  job.clock_offsets_s = {0, 0, 5, 5};
  job.host_link->problem = "nobody there";
  job.gpu_link = LinkFacts{.problem = "nobody there"};

  const std::vector<Finding> findings = judge(job);

  EXPECT_EQ(worst_of(findings), Level::kError);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.name.empty());
    EXPECT_FALSE(finding.found.empty()) << finding.name;
    if (finding.level == Level::kOk) continue;
    EXPECT_FALSE(finding.expected.empty()) << finding.name;
    EXPECT_FALSE(finding.remedy.empty()) << finding.name;
  }
}

}  // namespace
}  // namespace sidestream::launch::doctor
