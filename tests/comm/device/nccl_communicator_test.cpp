#include "tests/comm/device/nccl_fixture.hpp"

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using NcclCommunicatorTest = NcclTest;

TEST_F(NcclCommunicatorTest, communication_has_a_stream_of_high_priority) {
  const auto communicator = make();

  start(*communicator, {.after = compute}).wait();

  EXPECT_THAT(driver->priorities, testing::Contains(cuda::Priority::kHigh));
  EXPECT_NE(driver->stream_of("all_reduce"), compute);
  EXPECT_EQ(communicator->device(), 0);
}

TEST_F(NcclCommunicatorTest, collective_comes_after_earlier_work_and_before_who_waits_for_it) {
  const auto communicator = make();
  driver->enqueue("backward of bucket 0", compute);

  Work work = start(*communicator, {.bucket = 0, .after = compute});
  driver->enqueue("backward of bucket 1", compute);
  work.wait_on(compute);
  driver->enqueue("optimizer", compute);

  EXPECT_TRUE(driver->is_after("all_reduce", "backward of bucket 0"));
  EXPECT_FALSE(driver->is_after("backward of bucket 1", "all_reduce"));  // overlaps
  EXPECT_TRUE(driver->is_after("optimizer", "all_reduce"));
}

TEST_F(NcclCommunicatorTest, collectives_of_a_step_never_block_the_host) {
  const auto communicator = make();
  driver->hold();  // the device makes no progress at all
  const int synchronizations = driver->synchronizations;

  std::vector<Work> works;
  for (int bucket = 0; bucket < 5; ++bucket) {
    works.push_back(start(*communicator, {.bucket = bucket, .after = compute, .deadline = 10s}));
  }
  for (Work& work : works) {
    EXPECT_FALSE(work.done());
    work.wait_on(compute);
  }

  EXPECT_EQ(driver->synchronizations, synchronizations);
  EXPECT_EQ(driver->count_of("all_reduce"), 5u);
  driver->release();
}

TEST_F(NcclCommunicatorTest, events_are_used_again) {
  const auto communicator = make();
  for (int step = 0; step < 3; ++step) start(*communicator, {.after = compute}).wait();
  const std::size_t events = driver->events_alive;

  for (int step = 0; step < 200; ++step) {
    start(*communicator, {.after = compute}).wait();
    if (step % 20 == 0) std::this_thread::sleep_for(2ms);  // the watchdog lets go of its own
  }

  EXPECT_LT(driver->events_alive, events + 60);
}

TEST_F(NcclCommunicatorTest, every_collective_moves_what_it_should) {
  const auto communicator = make();
  std::array<float, 8> output{};
  const auto count = output.size();

  communicator->reduce_scatter(data.data(), output.data(), count, core::DType::kFloat32, {}).wait();
  EXPECT_EQ(output, data);
  output.fill(0);
  communicator->all_gather(data.data(), output.data(), count, core::DType::kFloat32, {}).wait();
  EXPECT_EQ(output, data);
  communicator->broadcast(data.data(), count, core::DType::kFloat32, 0, {}).wait();
  EXPECT_THROW(communicator->broadcast(data.data(), count, core::DType::kFloat32, 1, {}).wait(),
               core::Error);
  EXPECT_THROW(communicator->all_reduce(data.data(), count, core::DType::kUInt8, {}).wait(),
               core::Error);
}

TEST_F(NcclCommunicatorTest, broadcast_each_is_one_group) {
  const auto communicator = make();
  const std::array buffers = {Buffer{data.data(), 2, core::DType::kFloat32},
                              Buffer{data.data() + 2, 8, core::DType::kUInt8},
                              Buffer{data.data() + 4, 1, core::DType::kInt64}};

  communicator->broadcast_each(buffers, 0, {}).wait();

  EXPECT_EQ(api->groups, 1);
  EXPECT_EQ(api->in_group, 3);
}

TEST_F(NcclCommunicatorTest, what_is_asked_of_nccl_reaches_it) {
  make(1000ms, 1, {.cta_policy = nccl::CtaPolicy::kEfficiency, .ctas = 8});

  EXPECT_EQ(api->tuning.cta_policy, nccl::CtaPolicy::kEfficiency);
  EXPECT_EQ(api->tuning.ctas, 8);
}

TEST_F(NcclCommunicatorTest, slow_connection_is_polled) {
  api->polls_until_connected = 20;

  const auto communicator = make();

  EXPECT_EQ(communicator->backend_name(), "nccl");
}

TEST_F(NcclCommunicatorTest, connection_that_fails_carries_the_words_of_nccl) {
  api->init_failure = "unhandled system error: no such interface";

  try {
    make();
    FAIL() << "no error";
  } catch (const core::AgreedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 on node1: NCCL cannot connect rank 0: unhandled "
                                        "system error: no such interface"));
    EXPECT_EQ(error.code(), core::ExitCode::kCollective);
  }
  EXPECT_TRUE(record->gone);
}

TEST_F(NcclCommunicatorTest, connection_that_never_comes_is_aborted_at_the_deadline) {
  api->polls_until_connected = -1;

  try {
    make(20ms);
    FAIL() << "no error";
  } catch (const core::AgreedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is not connected after 15 ms"));
    EXPECT_THAT(error.what(), HasSubstr("NCCL_DEBUG=INFO shows which"));
    EXPECT_THAT(error.what(), HasSubstr("NCCL_SOCKET_IFNAME=INTERFACE chooses another). "
                                        "--timeout-setup gives slow ranks more time"));
  }
  EXPECT_EQ(api->aborted, 1);
}

TEST_F(NcclCommunicatorTest, launch_that_fails_names_rank_operation_and_cause) {
  const auto communicator = make();
  api->launch_failure = "invalid usage: misaligned";

  try {
    start(*communicator, {.bucket = 3}).wait();
    FAIL() << "no error";
  } catch (const core::CollectiveError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0: all_reduce (operation 1, bucket 3, 32 bytes): "
                                        "invalid usage: misaligned"));
  }
  EXPECT_EQ(api->aborted, 1);
  EXPECT_TRUE(failed->load());
}

TEST_F(NcclCommunicatorTest, group_that_fails_throws) {
  const auto communicator = make();
  api->group_failure = "remote process exited";
  const std::array buffers = {Buffer{data.data(), 2, core::DType::kFloat32}};

  EXPECT_THROW(communicator->broadcast_each(buffers, 0, {}).wait(), core::CollectiveError);
}

TEST_F(NcclCommunicatorTest, launch_that_takes_time_is_waited_for) {
  const auto communicator = make();
  api->polls_until_launched = 10;

  start(*communicator, {}).wait();

  EXPECT_FALSE(failed->load());
}

TEST_F(NcclCommunicatorTest, asynchronous_error_ends_everything_though_nobody_waits) {
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {.bucket = 1, .deadline = 10s});
  work.wait_on(compute);

  api->break_with("remote error: connection closed by peer");
  while (!failed->load()) std::this_thread::sleep_for(1ms);
  while (api->aborted == 0) std::this_thread::sleep_for(1ms);

  EXPECT_THROW(start(*communicator, {}).wait(), core::CollectiveError);
  const std::lock_guard lock(record->mutex);
  EXPECT_THAT(record->announced, ElementsAre(HasSubstr("bucket 1, 32 bytes): remote error")));
}

// The host side knows of it by what this rank has told its peers.
TEST_F(NcclCommunicatorTest, asynchronous_error_is_what_calls_of_the_host_throw) {
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {.bucket = 1, .deadline = 10s});

  api->break_with("remote error: connection closed by peer");
  while (!failed->load()) std::this_thread::sleep_for(1ms);

  const std::vector<std::function<void()>> calls = {[&] { communicator->exchange("votes", {}); },
                                                    [&] { communicator->barrier({}); },
                                                    [&] { communicator->leave(); }};
  for (const auto& call : calls) {
    EXPECT_THAT(words_of(call), StartsWith("rank 0: all_reduce (operation 1, bucket 1, 32 bytes): "
                                           "remote error: connection closed by peer"));
  }
}

TEST_F(NcclCommunicatorTest, failure_that_is_none_of_nccl_stays_the_hosts) {
  const auto communicator = make();
  record->announced.emplace_back("the disk is full");

  EXPECT_THAT(words_of([&] { communicator->barrier({}); }), HasSubstr("told its peers"));
}

TEST_F(NcclCommunicatorTest, operation_past_its_deadline_throws_in_wait_and_is_aborted) {
  const auto communicator = make();
  driver->hold();

  Work work = start(*communicator, {});

  EXPECT_THAT(failure_of(work), HasSubstr("rank 0: all_reduce (operation 1, 32 bytes): not "
                                          "finished after 50 ms"));
  while (api->aborted == 0) std::this_thread::sleep_for(1ms);
}

TEST_F(NcclCommunicatorTest, operation_past_its_deadline_names_who_is_missing) {
  record->missing = "rank 1 on node1 (last started operation 1)";
  const auto communicator = make();
  start(*communicator, {}).wait();
  driver->hold();

  Work work = start(*communicator, {.bucket = 4});

  EXPECT_THAT(failure_of(work),
              HasSubstr("rank 0: all_reduce (operation 2, bucket 4, 32 bytes): not finished after "
                        "50 ms; missing: rank 1 on node1 (last started operation 1). "
                        "--timeout-step gives slow ranks more time"));
  const std::lock_guard lock(record->mutex);
  EXPECT_THAT(record->started, ElementsAre(1u, 2u));
}

TEST_F(NcclCommunicatorTest, deadline_of_an_operation_starts_when_it_is_the_oldest) {
  const auto communicator = make();
  driver->hold();
  Work slow = start(*communicator, {.deadline = 60s});
  Work behind = start(*communicator, {.deadline = 100ms});

  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(behind.done());
  driver->release();

  EXPECT_EQ(failure_of(slow), "");
  EXPECT_EQ(failure_of(behind), "");
}

TEST_F(NcclCommunicatorTest, broken_connection_is_explained_by_the_peer_that_has_gone) {
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {.deadline = 10s});

  api->break_with("remote process exited or there was a network error");
  std::this_thread::sleep_for(50ms);
  {
    const std::lock_guard lock(record->mutex);
    record->peer_failure = {.text = "rank 1 has died", .is_gone = true};
  }

  EXPECT_THAT(failure_of(work), HasSubstr("rank 1 has died"));
  EXPECT_TRUE(is_of_a_dead_peer([&] { start(*communicator, {}).wait(); }))
      << "nobody else will tell people about it";
  driver->release();
}

TEST_F(NcclCommunicatorTest, failure_of_a_peer_reaches_who_waits_for_the_device) {
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {.deadline = 10s});

  {
    const std::lock_guard lock(record->mutex);
    record->peer_failure = {.text = "rank 3: out of memory"};
  }

  EXPECT_THAT(failure_of(work), HasSubstr("a peer has stopped: rank 3: out of memory"));
  EXPECT_FALSE(is_of_a_dead_peer([&] { start(*communicator, {}).wait(); }))
      << "that one tells people itself";
}

TEST_F(NcclCommunicatorTest, fault_of_the_device_is_thrown) {
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {.deadline = 10s});

  driver->break_with("cudaEventQuery: an illegal memory access was encountered");

  EXPECT_THAT(failure_of(work), HasSubstr("illegal memory access"));
}

TEST_F(NcclCommunicatorTest, orderly_end_flushes_and_frees) {
  make().reset();

  EXPECT_EQ(api->finalized, 1);
  EXPECT_EQ(api->destroyed, 1);
  EXPECT_EQ(api->aborted, 0);
  EXPECT_EQ(driver->streams_alive, 1u);  // the test's own
  EXPECT_TRUE(record->gone);
}

TEST_F(NcclCommunicatorTest, end_after_announced_failure_aborts) {
  auto communicator = make();

  communicator->announce_failure("out of data");
  communicator.reset();

  EXPECT_EQ(api->aborted, 1);
  EXPECT_EQ(api->finalized, 0);
}

}  // namespace
}  // namespace sidestream::comm
