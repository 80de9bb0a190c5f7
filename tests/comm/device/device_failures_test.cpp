// What users see when something is wrong with the GPUs of a job: one message that names the rank,
// the exit code, and that all ranks stop. The ranks are real, CUDA and NCCL are fakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/comm/mpi_job.hpp"

namespace sidestream::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::size_t times_in(const std::string& output, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = output.find(words); at != std::string::npos;
       at = output.find(words, at + 1))
    ++count;
  return count;
}

std::size_t messages_in(const std::string& output) { return times_in(output, "FAILED("); }

class DeviceFailuresTest : public ::testing::TestWithParam<const char*> {
 protected:
  static Outcome run(const std::string& scenario, const std::string& shared_memory = GetParam()) {
    return run_on_two_ranks(SIDESTREAM_DEVICE_FAILURE_PROGRAM, scenario + " " + shared_memory);
  }
  static void expect_one_message(const std::string& scenario, int exit_code,
                                 const std::string& words) {
    const Outcome outcome = run(scenario);
    EXPECT_EQ(outcome.exit_code, exit_code) << scenario << "\n" << outcome.output;
    EXPECT_EQ(messages_in(outcome.output), 1u) << scenario << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(words)) << scenario;
    EXPECT_LT(outcome.seconds, 20) << scenario;
  }
};

TEST_P(DeviceFailuresTest, late_rank_is_named_at_the_deadline) {
  const Outcome outcome = run("late");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 0: all_reduce (operation 3, bucket 7, 16 bytes): not "
                                        "finished after 600 ms; missing: rank 1 on "));
  EXPECT_THAT(outcome.output, HasSubstr("(last started operation 2)"));
  EXPECT_LT(outcome.seconds, 15);
}

TEST_P(DeviceFailuresTest, rank_that_keeps_nccl_from_starting_is_named) {
  const Outcome outcome = run("unstarted");

  EXPECT_EQ(outcome.exit_code, 6) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("NCCL has not started it after 1500 ms; missing: rank 1"));
  EXPECT_THAT(outcome.output, HasSubstr("(last started operation 2)"));
}

TEST_P(DeviceFailuresTest, of_several_ranks_that_wait_one_finds_out_who_is_missing) {
  for (const std::string scenario : {"late ", "unstarted "}) {
    const Outcome outcome =
        run_on_ranks(4, SIDESTREAM_DEVICE_FAILURE_PROGRAM, scenario + GetParam());

    EXPECT_EQ(times_in(outcome.output, "FAILED(6)"), 1u) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("missing: rank 1 on "));
  }
}

TEST_P(DeviceFailuresTest, failure_of_a_peer_reaches_a_rank_that_waits_for_its_device) {
  const Outcome outcome = run("announces");

  EXPECT_THAT(outcome.exit_code, AnyOf(6, 7)) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 1: the disk is full"));
}

TEST_P(DeviceFailuresTest, rank_without_a_usable_gpu_is_refused_once) {
  expect_one_message("no-gpu", 2, "rank 1 on ");
  expect_one_message("no-such-index", 2, "(CUDA_VISIBLE_DEVICES is '9')");
  expect_one_message("busy", 2, "GPU 1 cannot be used: device is in exclusive use");
  expect_one_message("shared-gpu", 2, "would share GPU 0 (Fake 100), of 1 that they see");
}

TEST_P(DeviceFailuresTest, without_any_gpu_the_job_runs_with_one_warning) {
  const Outcome outcome = run("no-gpu-anywhere");

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(times_in(outcome.output, "warning: "), 1u) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("no GPU is used: "));
}

TEST_P(DeviceFailuresTest, nccl_that_does_not_fit_is_refused_once) {
  expect_one_message("no-nccl", 2, ": backend nccl: the NCCL library cannot be loaded");
  expect_one_message("other-nccl", 2, ": NCCL 2.23.4 was loaded, this build was made with NCCL");
  expect_one_message("interface", 2, ": NCCL_SOCKET_IFNAME is '=nothing'");
}

TEST_P(DeviceFailuresTest, connection_that_fails_everywhere_ends_with_one_message) {
  expect_one_message("no-network", 6, "rank 0 on ");
}

TEST_P(DeviceFailuresTest, connection_that_fails_on_one_rank_ends_the_others) {
  expect_one_message("one-unconnected", 6, "NCCL cannot connect rank 1: unhandled system error");
}

TEST_P(DeviceFailuresTest, full_memory_on_one_rank_ends_all_with_need_and_have) {
  const Outcome outcome = run("memory");

  EXPECT_EQ(outcome.exit_code, 8) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("GPU memory: 5 MiB wanted, 1 of 2 MiB are free"));
}

TEST_P(DeviceFailuresTest, mixed_models_are_warned_about_once_and_run) {
  const Outcome outcome = run("mixed");

  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("Fake 100 on rank 0; Fake 50 on rank 1"));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFailuresTest, ::testing::Values("on", "off"),
                         [](const auto& info) {
                           return std::string(info.param) == "on" ? "sharedMemory" : "plainMpi";
                         });

}  // namespace
}  // namespace sidestream::test
