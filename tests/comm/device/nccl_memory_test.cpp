// What NCCL's communicator allocates, registers with the peers and counts.
#include <thread>

#include "tests/comm/device/nccl_fixture.hpp"

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using NcclMemoryTest = NcclTest;

TEST_F(NcclMemoryTest, memory_is_on_the_device_and_zero) {
  auto communicator = make();

  const Allocation memory = communicator->allocate(100);

  EXPECT_EQ(memory.bytes, 100u);
  EXPECT_EQ(std::count(memory.data, memory.data + 100, std::byte{0}), 100);
  EXPECT_EQ(driver->blocks_alive, 1u);
  communicator.reset();
  EXPECT_EQ(driver->blocks_alive, 0u);
}

TEST_F(NcclMemoryTest, full_memory_throws_with_need_and_have) {
  const auto communicator = make();
  api->has_memory = false;
  driver->memory_is_full = true;

  try {
    communicator->allocate(5 << 20);
    FAIL() << "no error";
  } catch (const core::MemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("5 MiB wanted, 1 of 2 MiB are free"));
  }
}

TEST_F(NcclMemoryTest, memory_of_several_ranks_is_registered_until_the_end) {
  auto communicator = make(1000ms, 2);
  EXPECT_EQ(communicator->backend_name(), "nccl");

  communicator->allocate(1000);
  communicator->allocate(2000);

  EXPECT_EQ(communicator->backend_name(), "nccl+windows");
  EXPECT_EQ(api->windows, 2);
  communicator.reset();
  EXPECT_EQ(api->windows, 0);
  EXPECT_EQ(api->finalized, 1);
}

TEST_F(NcclMemoryTest, registered_memory_outlives_the_communicator_that_knows_it) {
  auto communicator = make(1000ms, 2);

  std::shared_ptr<std::byte> memory = communicator->allocate_registered(1000);

  EXPECT_EQ(api->windows, 1);
  EXPECT_EQ(std::count(memory.get(), memory.get() + 1000, std::byte{0}), 1000);
  communicator.reset();
  EXPECT_EQ(api->windows, 0);
  EXPECT_EQ(driver->blocks_alive, 1u);
  const int before = driver->device_finishes;
  memory.reset();
  EXPECT_EQ(driver->device_finishes, before + 1) << "kernels may be about to use it";
  EXPECT_EQ(driver->blocks_alive, 0u);
}

TEST_F(NcclMemoryTest, end_of_memory_waits_for_the_device_that_it_is_on) {
  index = 3;
  std::shared_ptr<std::byte> memory = make(1000ms, 2)->allocate_registered(1000);

  std::jthread([&memory] { memory.reset(); }).join();  // which has chosen no device

  EXPECT_EQ(driver->last_finished, 3);
}

TEST_F(NcclMemoryTest, registered_memory_that_nobody_has_ends_when_more_is_allocated) {
  const auto communicator = make(1000ms, 2);
  std::shared_ptr<std::byte> first = communicator->allocate_registered(1000);
  const std::shared_ptr<std::byte> second = communicator->allocate_registered(1000);
  communicator->allocate(1000);

  first.reset();
  EXPECT_EQ(api->windows, 3) << "no rank knows whether its peers use it";
  const int before = driver->device_finishes;
  const std::shared_ptr<std::byte> third = communicator->allocate_registered(1000);

  EXPECT_EQ(api->windows, 3);
  EXPECT_EQ(driver->blocks_alive, 3u);
  EXPECT_GT(driver->device_finishes, before) << "kernels may be about to use it";
  EXPECT_EQ(api->freed_in_windows, 0);
  EXPECT_EQ(communicator->backend_name(), "nccl+windows");
}

// NCCL looks for the place of the next window by what each rank has registered: the same on all.
TEST_F(NcclMemoryTest, registered_memory_that_a_peer_still_has_stays) {
  bool has_peer_all = true;
  reply = [&](const std::string& mine, int) { return has_peer_all && mine == "0" ? "1" : mine; };
  const auto communicator = make(1000ms, 2);
  communicator->allocate_registered(1000);

  communicator->allocate(1000);
  EXPECT_EQ(driver->blocks_alive, 2u);
  has_peer_all = false;
  communicator->allocate(1000);

  EXPECT_EQ(driver->blocks_alive, 2u);
  EXPECT_EQ(api->windows, 2);
}

TEST_F(NcclMemoryTest, registered_memory_is_none_without_windows_or_peers) {
  EXPECT_EQ(make(1000ms, 2, {.windows = false})->allocate_registered(1000), nullptr);
  EXPECT_EQ(make()->allocate_registered(1000), nullptr);
  EXPECT_EQ(driver->blocks_alive, 0u);
}

TEST_F(NcclMemoryTest, registration_that_goes_on_behind_its_call_is_waited_for) {
  const auto communicator = make(1000ms, 2);
  api->polls_until_registered = 20;

  communicator->allocate(1000);

  EXPECT_NO_THROW(start(*communicator, {}).wait());
}

TEST_F(NcclMemoryTest, registration_ends_when_a_peer_has_stopped) {
  api->polls_until_registered = -1;
  for (const bool is_gone : {false, true}) {
    const auto communicator = make(10min, 2);
    record->peer_failure = {.text = "rank 1: the disk is full", .is_gone = is_gone};
    bool is_of_dead = false;

    const std::string words = words_of([&] {
      try {
        communicator->allocate(1000);
      } catch (const core::PeerError& error) {
        is_of_dead = dynamic_cast<const core::DeadPeerError*>(&error) != nullptr;
        throw;
      }
    });

    EXPECT_EQ(words,
              "rank 0: NCCL cannot register 1000 bytes with the peers: a peer has stopped: rank 1: "
              "the disk is full");
    EXPECT_EQ(is_of_dead, is_gone);
    EXPECT_EQ(driver->blocks_alive, 0u);
    EXPECT_EQ(api->freed_in_windows, 0) << "while NCCL is at work on it";
    EXPECT_TRUE(record->announced.empty()) << "the peer has said it itself";
  }
}

TEST_F(NcclMemoryTest, memory_is_not_registered_where_it_cannot_be_or_is_not_wanted) {
  make(1000ms, 2, {.windows = false})->allocate(1000);
  EXPECT_EQ(api->windows, 0);
  make()->allocate(1000);  // alone
  EXPECT_EQ(api->windows, 0);

  api->has_windows = false;
  const auto communicator = make(1000ms, 2);
  communicator->allocate(1000);

  EXPECT_EQ(api->windows, 0);
  EXPECT_EQ(communicator->backend_name(), "nccl");
}

TEST_F(NcclMemoryTest, registration_that_fails_names_the_flag_and_tells_the_peers) {
  const auto communicator = make(1000ms, 2);
  api->window_failure = "unhandled cuda error";

  try {
    communicator->allocate(1000);
    FAIL() << "no error";
  } catch (const core::CollectiveError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0: NCCL cannot register 1000 bytes with the peers: "
                                        "unhandled cuda error. --nccl-windows off does without"));
  }
  EXPECT_EQ(api->aborted, 1);
  const std::lock_guard lock(record->mutex);
  EXPECT_THAT(record->announced, ElementsAre(HasSubstr("--nccl-windows off")));
}

TEST_F(NcclMemoryTest, memory_that_has_gone_is_counted_with_that_of_nccl) {
  driver->free_memory.free_bytes = 1000;
  const auto communicator = make();

  driver->free_memory.free_bytes = 400;

  EXPECT_EQ(communicator->device_memory_taken(), 600);
}

}  // namespace
}  // namespace sidestream::comm
