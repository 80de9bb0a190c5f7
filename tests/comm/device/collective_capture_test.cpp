// Collectives of NCCL that are captured and replayed, behind fakes of CUDA and NCCL.
#include "comm/collective_capture.hpp"

#include <thread>

#include "tests/comm/device/nccl_fixture.hpp"

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using CollectiveCaptureTest = NcclTest;

TEST_F(CollectiveCaptureTest, captured_collectives_join_the_capture_and_nobody_asks_for_them) {
  const auto communicator = make();
  CollectiveCapture& capture = *communicator->collective_capture();
  start(*communicator, {.after = compute}).wait();

  driver->start_capture(compute);
  capture.begin_capture();
  std::vector<Work> works;
  for (int bucket = 0; bucket < 3; ++bucket)
    works.push_back(start(*communicator, {.bucket = bucket, .after = compute}));
  for (Work& work : works) work.wait_on(compute);
  capture.end_capture();

  EXPECT_NO_THROW(driver->finish_capture());
  EXPECT_EQ(driver->count_of("all_reduce"), 4u);
  std::this_thread::sleep_for(20ms);  // the watchdog looks every millisecond
  EXPECT_FALSE(*failed);
  EXPECT_FALSE(communicator->is_in_flight());
}

TEST_F(CollectiveCaptureTest, captured_collective_cannot_be_waited_for_by_the_host) {
  const auto communicator = make();
  driver->start_capture(compute);
  communicator->collective_capture()->begin_capture();

  Work work = start(*communicator, {.after = compute});

  EXPECT_THROW(work.wait(), core::Error);
  communicator->collective_capture()->end_capture();
  EXPECT_THROW(driver->finish_capture(), core::Error);  // nobody has joined it
}

// As many numbers as a rank uses that takes the step without a graph.
TEST_F(CollectiveCaptureTest, replay_counts_its_collectives) {
  const auto communicator = make();
  CollectiveCapture& capture = *communicator->collective_capture();
  start(*communicator, {.after = compute}).wait();  // 1
  driver->start_capture(compute);
  capture.begin_capture();
  for (int bucket = 0; bucket < 3; ++bucket)
    start(*communicator, {.bucket = bucket, .after = compute}).wait_on(compute);
  capture.end_capture();
  driver->finish_capture();

  capture.replayed(compute);                        // 2 to 4
  capture.replayed(compute);                        // 5 to 7
  start(*communicator, {.after = compute}).wait();  // 8

  EXPECT_THAT(record->started, ElementsAre(1, 4, 7, 8));
}

TEST_F(CollectiveCaptureTest, capture_that_is_given_up_leaves_no_trace_in_the_numbers) {
  const auto communicator = make();
  CollectiveCapture& capture = *communicator->collective_capture();
  driver->start_capture(compute);
  capture.begin_capture();
  start(*communicator, {.after = compute}).wait_on(compute);
  capture.end_capture();
  capture.end_capture();
  driver->finish_capture();

  start(*communicator, {.after = compute}).wait();

  EXPECT_THAT(record->started, ElementsAre(1));
}

TEST_F(CollectiveCaptureTest, replay_that_does_not_end_is_named_at_its_deadline) {
  const auto communicator = make();
  record->missing = "rank 1 on node1";
  CollectiveCapture& capture = *communicator->collective_capture();
  driver->start_capture(compute);
  capture.begin_capture();
  for (int bucket = 0; bucket < 2; ++bucket)
    start(*communicator, {.bucket = bucket, .after = compute}).wait_on(compute);
  capture.end_capture();
  driver->finish_capture();
  driver->hold();

  capture.replayed(compute);
  while (!*failed) std::this_thread::sleep_for(1ms);

  EXPECT_THAT(
      record->announced.front(),
      testing::AllOf(HasSubstr("replay of 2 collectives (the last is operation 2, 64 bytes)"),
                     HasSubstr("missing: rank 1 on node1")));
  EXPECT_THROW(capture.replayed(compute), core::CollectiveError);
  driver->release();
}

// The registration of a captured buffer talks to the peers; one that has failed does not answer.
TEST_F(CollectiveCaptureTest, capture_that_waits_for_a_failed_peer_ends_with_what_it_said) {
  const auto communicator = make();
  CollectiveCapture& capture = *communicator->collective_capture();
  driver->start_capture(compute);
  capture.begin_capture();
  api->polls_until_launched = -1;  // for ever
  record->peer_failure = {.text = "rank 1: out of memory"};

  try {
    start(*communicator, {.bucket = 1, .after = compute}).wait_on(compute);
    ADD_FAILURE() << "it came back";
  } catch (const core::PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bucket 1"));
    EXPECT_THAT(error.what(), HasSubstr("a peer has stopped: rank 1: out of memory"));
  }

  EXPECT_TRUE(*failed);
  EXPECT_THROW(start(*communicator, {.after = compute}).wait_on(compute), core::PeerError);
  capture.end_capture();
}

// NCCL's abort waits for the end of the graph, which the thread that failed has yet to destroy.
TEST_F(CollectiveCaptureTest, failure_is_announced_though_a_graph_holds_the_communicator) {
  const auto communicator = make();
  CollectiveCapture& capture = *communicator->collective_capture();
  driver->start_capture(compute);
  capture.begin_capture();
  start(*communicator, {.after = compute}).wait_on(compute);
  capture.end_capture();
  driver->finish_capture();
  api->holds_abort = true;

  communicator->announce_failure("rank 0 stops");  // comes back

  EXPECT_THROW(start(*communicator, {.after = compute}).wait(), core::CollectiveError);
  EXPECT_EQ(api->abort_ended, 0);
  api->holds_abort = false;
  capture.dropped();
  while (api->abort_ended == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(api->aborted, 1);
}

}  // namespace
}  // namespace sidestream::comm
