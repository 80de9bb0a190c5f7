// In which order a rank whose collective has failed comes to its end.
#include <atomic>
#include <thread>

#include "tests/comm/device/nccl_fixture.hpp"

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct NcclEndingTest : NcclTest {
  std::atomic<bool> is_written = false;

  // What a rank writes down when a collective has failed, which takes its time.
  void write_slowly() {
    failure_hook->add([this] {
      std::this_thread::sleep_for(100ms);
      is_written = true;
    });
  }
  void wait_for_announcement() const {
    for (bool is_announced = false; !is_announced; std::this_thread::sleep_for(1ms)) {
      const std::lock_guard lock(record->mutex);
      is_announced = !record->announced.empty();
    }
  }
};

TEST_F(NcclEndingTest, failure_is_thrown_when_it_is_written_down) {
  write_slowly();
  const auto communicator = make();
  driver->hold();

  Work work = start(*communicator, {});

  EXPECT_THAT(failure_of(work), HasSubstr("not finished after 50 ms"));
  EXPECT_TRUE(is_written) << "who unwinds takes the hook away";
}

TEST_F(NcclEndingTest, calls_that_come_meanwhile_wait_until_it_is_written_down) {
  const std::vector<std::function<void(NcclCommunicator&)>> calls = {
      [](NcclCommunicator& communicator) { communicator.barrier({}); },
      [this](NcclCommunicator& communicator) { start(communicator, {}).wait(); }};
  for (const auto& call : calls) {
    is_written = false;
    record->announced.clear();
    write_slowly();
    const auto communicator = make();
    driver->hold();
    const Work work = start(*communicator, {});
    wait_for_announcement();

    EXPECT_THAT(words_of([&] { call(*communicator); }), HasSubstr("not finished after 50 ms"));
    EXPECT_TRUE(is_written);

    driver->release();
  }
}

// What a thread adds or meets while another one writes down the first failure.
TEST_F(NcclEndingTest, watchdog_takes_nothing_from_calls_that_come_meanwhile) {
  const Call call{.kind = CallKind::kBarrier, .sequence = 7};
  driver->hold();
  const auto event = std::make_shared<cuda::OwnedEvent>(driver);
  event->record(compute);
  nccl::Watchdog* first = nullptr;
  std::vector<std::string> words(2);
  std::vector<std::jthread> threads;
  const auto meet = [&](std::string& place, const std::function<void()>& what) {
    threads.emplace_back([this, &place, what] {
      place = words_of(what);
      if (!is_written) place += ", thrown too early";
    });
  };
  nccl::Watchdog watchdog(
      0,
      {.async_error = [] { return std::string(); },
       .peer_failure = [] { return std::optional<PeerFailure>(); },
       .peers = nullptr,
       .on_start = {},
       .on_failure =
           [&](const std::string&) {
             meet(words[0], [&] {
               first->add(std::make_shared<nccl::DeviceOperation>(
                   nccl::DeviceOperation{.call = call, .end = event, .limit = 10s}));
             });
             meet(words[1], [&] { first->fail(call, "the second failure"); });
             std::this_thread::sleep_for(100ms);
             is_written = true;
           },
       .abort = [] {}},
      1ms);
  first = &watchdog;

  const std::string mine = words_of([&] { watchdog.fail(call, "the first failure"); });
  threads.clear();

  EXPECT_THAT(mine, HasSubstr("the first failure"));
  EXPECT_THAT(words, testing::Each(mine));
  EXPECT_TRUE(watchdog.idle());
  driver->release();
}

// The call keeps the communicator for itself, which nobody may abort under it.
TEST_F(NcclEndingTest, launch_that_hangs_keeps_neither_the_deadline_nor_the_message_waiting) {
  const auto communicator = make();
  driver->hold();
  Work earlier = start(*communicator, {.bucket = 1});
  api->holds_launch = true;
  std::string words;
  std::jthread hanging([&] { words = words_of([&] { start(*communicator, {}).wait(); }); });
  while (!api->is_in_launch) std::this_thread::sleep_for(1ms);

  const std::string first = failure_of(earlier);
  communicator->announce_failure("this rank ends");
  EXPECT_EQ(api->aborted, 0) << "while a call is in NCCL";
  api->holds_launch = false;
  hanging.join();

  EXPECT_THAT(first, HasSubstr("bucket 1, 32 bytes): not finished after 50 ms"));
  EXPECT_EQ(words, first);
  EXPECT_EQ(api->aborted, 1);
  driver->release();
}

// As weights that no forward has waited for: the streams are in order, and no host waits.
struct NcclEndOfGatherTest : NcclEndingTest {
  std::unique_ptr<NcclCommunicator> communicator = make(1000ms, 2);
  std::shared_ptr<std::byte> weights = communicator->allocate_registered(4096);

  void gather(std::chrono::milliseconds deadline) {
    driver->hold();
    communicator
        ->all_gather(weights.get(), weights.get(), 512, core::DType::kFloat32,
                     {.after = compute, .deadline = deadline})
        .wait_on(compute);
  }
  void fail_a_peer() const {
    const std::lock_guard lock(record->mutex);
    record->peer_failure = {.text = "rank 1 has died", .is_gone = true};
  }
};

TEST_F(NcclEndOfGatherTest, windows_stay_registered_while_the_device_uses_them) {
  gather(10min);

  std::jthread end([this] { communicator.reset(); });
  std::this_thread::sleep_for(50ms);

  EXPECT_EQ(api->windows, 1);
  driver->release();
  end.join();
  EXPECT_EQ(api->windows, 0);
  EXPECT_EQ(api->finalized, 1);
}

TEST_F(NcclEndOfGatherTest, end_does_not_wait_for_a_peer_that_fails_meanwhile) {
  gather(10min);

  std::jthread end([this] { communicator.reset(); });
  fail_a_peer();
  end.join();

  EXPECT_EQ(api->aborted, 1);
  EXPECT_EQ(api->finalized, 0);
  EXPECT_EQ(api->windows, 1) << "the abort has them";
}

TEST_F(NcclEndOfGatherTest, rank_leaves_when_its_device_needs_the_peers_no_more) {
  gather(10min);

  std::jthread leaving([this] { communicator->leave(); });
  std::this_thread::sleep_for(50ms);

  EXPECT_EQ(record->left, 0);
  driver->release();
  leaving.join();
  EXPECT_EQ(record->left, 1);
}

TEST_F(NcclEndOfGatherTest, failure_of_what_nobody_waited_for_is_thrown_by_leave) {
  gather(50ms);

  EXPECT_THAT(words_of([this] { communicator->leave(); }), HasSubstr("not finished after 50 ms"));
}

TEST_F(NcclEndOfGatherTest, rank_that_has_told_of_its_failure_leaves_at_once) {
  gather(10min);

  communicator->announce_failure("out of data");

  EXPECT_EQ(words_of([this] { communicator->leave(); }), "");
  EXPECT_EQ(record->left, 1);
}

}  // namespace
}  // namespace sidestream::comm
