#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/doctor/made_up_job.hpp"

namespace sidestream::launch::doctor {
namespace {

using ::testing::HasSubstr;

TEST(ProgramCheckTest, another_build_on_a_rank_stops_the_job) {
  JobFacts job = good_job();
  EXPECT_EQ(check_program(job)->level, Level::kOk);

  job.ranks[1].program.sha256 = "bb";

  EXPECT_EQ(check_program(job)->level, Level::kError);
  EXPECT_THAT(check_program(job)->found, HasSubstr("rank 1 on a"));
}

TEST(LibtorchCheckTest, another_version_than_the_headers_stops_the_job) {
  JobFacts job = good_job();
  job.ranks[1].program.torch = "2.10.0";

  const auto finding = check_libtorch(job);

  EXPECT_EQ(finding->level, Level::kError);
  EXPECT_EQ(finding->where, "rank 1 on a");
}

TEST(NcclCheckTest, different_versions_over_ranks_matter_on_gpus) {
  JobFacts job = good_job();
  job.ranks[1].nccl.loaded = "2.27.3";
  EXPECT_EQ(check_nccl(job)->level, Level::kWarning);
  EXPECT_THAT(check_nccl(job)->found, HasSubstr("NCCL 2.28.9 on rank 0 on a, 2.27.3 on rank 1"));

  EXPECT_EQ(check_nccl(with_gpus(job))->level, Level::kError);
}

TEST(NcclCheckTest, what_cannot_be_loaded_is_an_error_only_where_it_is_needed) {
  JobFacts job = good_job();
  for (RankFacts& rank : job.ranks) rank.nccl = {.problem = "cannot be loaded"};

  EXPECT_EQ(check_nccl(job)->level, Level::kNote);
  EXPECT_EQ(check_nccl(with_gpus(job))->level, Level::kError);
}

TEST(MpiCheckTest, versions_are_compared_over_ranks_and_with_the_build) {
  JobFacts job = good_job();
  EXPECT_EQ(check_mpi(job)->level, Level::kOk);

  for (RankFacts& rank : job.ranks) rank.mpi.standard = "4.0";
  EXPECT_EQ(check_mpi(job)->level, Level::kWarning);

  job.ranks[1].mpi.version = "MPICH 4";
  EXPECT_EQ(check_mpi(job)->level, Level::kError);
}

TEST(LauncherCheckTest, mpirun_is_asked_for_by_a_single_process) {
  JobFacts alone = good_job({"a"});
  EXPECT_EQ(check_launcher(alone)->level, Level::kOk);

  alone.ranks[0].mpirun = false;
  EXPECT_EQ(check_launcher(alone)->level, Level::kWarning);
  EXPECT_FALSE(check_launcher(good_job()).has_value());
}

TEST(GpuCheckTest, a_machine_without_gpus_is_fine_unless_one_was_asked_for) {
  JobFacts job = good_job();
  EXPECT_EQ(check_gpu(job)->level, Level::kNote);

  job.wish = comm::DeviceWish::kCuda;
  EXPECT_EQ(check_gpu(job)->level, Level::kError);
  job.wish = comm::DeviceWish::kCpu;
  EXPECT_FALSE(check_gpu(job).has_value());
}

TEST(GpuCheckTest, a_gpu_without_a_driver_is_named) {
  JobFacts job = good_job();
  for (RankFacts& rank : job.ranks) rank.gpu.on_bus = 2;

  const auto finding = check_gpu(job);

  EXPECT_EQ(finding->level, Level::kWarning);
  EXPECT_THAT(finding->found, HasSubstr("2 NVIDIA GPU(s) on the PCI bus"));
  EXPECT_THAT(finding->remedy, HasSubstr("install NVIDIA's driver"));
  EXPECT_EQ(check_toolkit(job)->level, Level::kWarning);  // and this build has no CUDA
}

TEST(GpuCheckTest, ranks_that_would_share_a_gpu_cannot_start) {
  JobFacts job = with_gpus(good_job());
  EXPECT_EQ(check_gpu(job)->level, Level::kOk);

  job.ranks[1].gpu.device = job.ranks[0].gpu.device;

  EXPECT_EQ(check_gpu(job)->level, Level::kError);
  EXPECT_THAT(check_gpu(job)->found, HasSubstr("would share GPU 0"));
}

TEST(GpuCheckTest, memory_and_clocks_that_others_hold_are_warnings) {
  JobFacts job = with_gpus(good_job());
  EXPECT_EQ(check_gpu_memory(job)->level, Level::kOk);
  EXPECT_EQ(check_gpu_clocks(job)->level, Level::kOk);

  job.ranks[1].gpu.device.memory.free_bytes = std::size_t{40} << 30;
  job.ranks[0].gpu.held_down = "power cap";

  EXPECT_EQ(check_gpu_memory(job)->level, Level::kWarning);
  EXPECT_EQ(check_gpu_memory(job)->where, "rank 1 on a");
  EXPECT_THAT(check_gpu_clocks(job)->found, HasSubstr("power cap"));
  EXPECT_EQ(check_gpu_clocks(job)->where, "rank 0 on a");
}

}  // namespace
}  // namespace sidestream::launch::doctor
