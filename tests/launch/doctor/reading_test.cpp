// What is read from files that are made up, and what a probe leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <thread>

#include "core/base/cgroup_limits.hpp"
#include "launch/doctor/patient_probe.hpp"
#include "launch/doctor/report.hpp"
#include "launch/doctor/storage_probe.hpp"
#include "launch/doctor/system_files.hpp"
#include "tests/launch/doctor/made_up_job.hpp"

namespace sidestream::launch::doctor {
namespace {

using namespace std::chrono_literals;
using core::CgroupLimits;
using core::read_cgroup_limits;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ReadingTest : public ::testing::Test {
 protected:
  ReadingTest()
      : root_(fs::temp_directory_path() /
              ("sidestream_doctor_test_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
  }
  ~ReadingTest() override { fs::remove_all(root_); }

  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  SystemFolders folders() const {
    return {.proc = root_ / "proc", .sys = root_ / "sys", .shared_memory = root_};
  }

  fs::path root_;
};

TEST_F(ReadingTest, cgroups_of_version_2_with_the_tightest_above) {
  write("proc/self/cgroup", "0::/batch/job\n");
  write("sys/fs/cgroup/batch/memory.max", "4000000000\n");
  write("sys/fs/cgroup/batch/memory.current", "1500000000\n");
  write("sys/fs/cgroup/batch/memory.stat", "anon 7\ninactive_file 500000000\n");
  write("sys/fs/cgroup/batch/job/memory.max", "max\n");
  write("sys/fs/cgroup/batch/job/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/batch/job/pids.max", "100\n");
  write("sys/fs/cgroup/batch/job/pids.current", "40\n");

  const CgroupLimits limits = read_cgroup_limits(root_ / "proc", root_ / "sys");

  EXPECT_EQ(limits.memory_bytes, 4'000'000'000);
  EXPECT_EQ(limits.memory_used_bytes, 1'000'000'000);
  EXPECT_DOUBLE_EQ(limits.processors, 1.5);
  EXPECT_EQ(limits.tasks_left, 60);
}

TEST_F(ReadingTest, cgroups_of_version_1_seen_from_a_container) {
  write("proc/self/cgroup", "4:memory:/outside/of/it\n3:cpu,cpuacct:/\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "300000000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");

  const CgroupLimits limits = read_cgroup_limits(root_ / "proc", root_ / "sys");

  EXPECT_EQ(limits.memory_bytes, 2'000'000'000);
  EXPECT_EQ(limits.memory_used_bytes, 300'000'000);
  EXPECT_EQ(limits.processors, 0);
  EXPECT_EQ(limits.tasks_left, kUnlimited);
}

TEST_F(ReadingTest, without_any_limit_nothing_is_limited) {
  write("proc/self/cgroup", "4:memory:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");

  EXPECT_EQ(read_cgroup_limits(root_ / "proc", root_ / "sys").memory_bytes, kUnlimited);
}

TEST_F(ReadingTest, memory_pages_links_and_gpus) {
  write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\n");
  write("proc/loadavg", "1.50 0.10 0.10 1/100 7\n");
  write("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 2025\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  write("sys/class/net/eth0/speed", "10000\n");
  write("sys/class/net/eth1/speed", "-1\n");
  write("sys/class/net/ib9/speed", "400000\n");
  write("sys/class/net/ib9/operstate", "down\n");
  write("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n");
  write("sys/bus/pci/devices/0000:02:00.0/class", "0x068000\n");  // a bridge of theirs

  EXPECT_EQ(read_memory(folders()).available_bytes, 50 * 1024);
  EXPECT_EQ(read_memory(folders()).huge_pages, "madvise");
  EXPECT_DOUBLE_EQ(read_processor(folders()).load, 1.5);
  EXPECT_EQ(read_network(folders()).fastest, "mlx5_0");
  EXPECT_DOUBLE_EQ(read_network(folders()).bytes_per_s, 25e9);
  EXPECT_TRUE(read_network(folders()).remote_memory);
  EXPECT_EQ(read_gpus(folders()).on_bus, 1);
  EXPECT_EQ(read_gpus(folders()).driver, "580.95.05");
}

TEST_F(ReadingTest, a_kernel_that_says_nothing_leaves_everything_open) {
  EXPECT_EQ(read_network(folders()).bytes_per_s, 0);
  EXPECT_EQ(read_clock_source(folders()), "");
  EXPECT_EQ(read_gpus(folders()).driver, "");
  EXPECT_EQ(read_memory(folders()).huge_pages, "");
}

TEST_F(ReadingTest, a_probe_measures_and_leaves_nothing) {
  const StorageFacts facts = probe_storage(root_ / "not/there/yet", {.syncs = 3, .bytes = 1 << 20});

  EXPECT_EQ(facts.problem, "");
  EXPECT_EQ(facts.folder, root_.string());
  EXPECT_GT(facts.fsync_s, 0);
  EXPECT_GT(facts.bytes_per_s, 0);
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(ReadingTest, a_probe_that_is_stopped_leaves_nothing) {
  int asked = 0;
  probe_storage(root_, {.syncs = 1000, .bytes = 1 << 30}, [&] { return ++asked > 2; });

  EXPECT_LT(asked, 10);
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(ReadingTest, a_probe_of_what_is_no_folder_says_so) {
  write("file", "");

  const StorageFacts facts = probe_storage(root_ / "file");

  EXPECT_THAT(facts.problem, HasSubstr("cannot create a file in"));
}

TEST_F(ReadingTest, a_probe_that_gets_no_answer_is_left_behind) {
  std::promise<void> server;
  const std::shared_future<void> answer = server.get_future().share();
  const auto hang = [answer](const std::function<bool()>&) {
    answer.wait();
    return StorageFacts{.probed = true};
  };

  JobFacts job = two_hosts();
  job.ranks[0].storage =
      probe_with_patience(root_, hang, [] { return false; }, {.slow = 10ms, .silent = 30ms});
  server.set_value();

  job.ranks[0] = RankFacts::from_text(job.ranks[0].to_text());
  EXPECT_EQ(check_writing(job)->level, Level::kError);
  EXPECT_EQ(check_writing(job)->found, "no answer from " + root_.string());
  EXPECT_FALSE(check_disk_space(job));
  EXPECT_EQ(check_same_folder(job)->level, Level::kOk) << "of a folder that nobody has seen";
}

TEST_F(ReadingTest, a_probe_that_takes_its_time_is_asked_to_end) {
  const auto slow = [](const std::function<bool()>& stop) {
    while (!stop()) std::this_thread::sleep_for(1ms);
    return StorageFacts{.probed = true, .fsync_s = 5};
  };

  for (const bool wanted : {false, true}) {
    const StorageFacts facts =
        probe_with_patience(root_, slow, [wanted] { return wanted; },
                            {.slow = wanted ? std::chrono::milliseconds(1h) : 10ms, .silent = 1h});

    EXPECT_TRUE(facts.answered);
    EXPECT_EQ(facts.fsync_s, 5);
  }
}

TEST_F(ReadingTest, a_probe_that_throws_is_a_problem) {
  const StorageFacts facts = probe_with_patience(
      root_, [](const auto&) -> StorageFacts { throw std::runtime_error("broken"); },
      [] { return false; });

  EXPECT_EQ(facts.problem, "broken");
}

TEST(RankFactsTest, survive_the_exchange_among_ranks) {
  RankFacts rank = with_gpus(good_job()).ranks[1];
  rank.storage.problem = "name \xff of no alphabet";

  const RankFacts other = RankFacts::from_text(rank.to_text());

  EXPECT_EQ(other.processor.allowed, rank.processor.allowed);
  EXPECT_EQ(other.memory.limit_bytes, kUnlimited);
  EXPECT_EQ(other.gpu.device.uuid, "GPU-1");
  EXPECT_EQ(other.to_text(), RankFacts::from_text(other.to_text()).to_text());
  EXPECT_THROW(RankFacts::from_text("{"), std::exception);
}

TEST(ReportTest, lines_fit_and_the_last_one_says_whether_training_can_start) {
  JobFacts job = good_job();
  job.ranks[0].memory.shared_free_bytes = 64 << 20;
  const std::string text = text_of(job, judge(job));

  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(text, HasSubstr("warning shared-memory"));
  EXPECT_THAT(text, HasSubstr("remedy: "));
  EXPECT_THAT(text, HasSubstr("\nTraining can start: "));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(text_of(job, judge(job), {.color = true}), HasSubstr("\033[33mwarning\033[0m"));

  job.host_link->problem = "nobody answers";
  EXPECT_THAT(text_of(job, judge(job)), HasSubstr("\nTraining cannot start: "));
}

TEST(ReportTest, places_are_named_where_not_all_ranks_are_alike) {
  JobFacts job = two_hosts();
  job.ranks[2].memory.shared_free_bytes = 64 << 20;

  EXPECT_EQ(check_shared_memory(job)->where, "b");
  EXPECT_THAT(text_of(job, {*check_shared_memory(job)}), HasSubstr("/dev/shm [b]"));
}

TEST(ReportTest, json_has_the_same_findings) {
  const JobFacts job = good_job();
  const std::string json = json_of(job, judge(job));

  EXPECT_THAT(json, HasSubstr("\"can_train\": true"));
  EXPECT_THAT(json, HasSubstr("\"name\": \"shared-memory\""));
  EXPECT_THAT(json, HasSubstr("\"hosts\": [\n    \"a\"\n  ]"));
}

}  // namespace
}  // namespace sidestream::launch::doctor
