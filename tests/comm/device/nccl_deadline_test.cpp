// Who tells people of a collective that is late on the devices of all ranks, and whom it asks.
#include <thread>

#include "tests/comm/device/nccl_fixture.hpp"

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct NcclDeadlineTest : NcclTest {
  std::vector<std::string> asked() const {
    const std::lock_guard lock(record->mutex);
    return record->asked;
  }
  void leave_it_to_others() const {
    const std::lock_guard lock(record->mutex);
    record->may_speak = false;
  }
  void let_a_peer_speak() const {
    const std::lock_guard lock(record->mutex);
    record->peer_failure = {.text = "rank 0: all_reduce: not finished"};
  }
};

TEST_F(NcclDeadlineTest, peers_are_asked_at_half_of_it_and_before_one_is_blamed) {
  const auto communicator = make();
  driver->hold();

  Work work = start(*communicator, {});

  EXPECT_THAT(failure_of(work), HasSubstr("not finished after 50 ms"));
  EXPECT_THAT(asked(), ElementsAre("everyone", "again"));
}

TEST_F(NcclDeadlineTest, operation_that_ends_in_its_second_half_has_asked_once) {
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {.deadline = 2s});

  while (asked().empty()) std::this_thread::sleep_for(1ms);
  driver->release();

  EXPECT_EQ(failure_of(work), "");
  EXPECT_THAT(asked(), ElementsAre("everyone"));
}

TEST_F(NcclDeadlineTest, rank_whose_turn_it_is_not_hears_what_another_says) {
  leave_it_to_others();
  const auto communicator = make();
  driver->hold();
  Work work = start(*communicator, {});

  std::this_thread::sleep_for(150ms);  // the limit is 50 ms
  EXPECT_FALSE(*failed);
  let_a_peer_speak();

  EXPECT_THAT(failure_of(work), HasSubstr("a peer has stopped: rank 0: all_reduce: not finished"));
  EXPECT_THAT(asked(), ElementsAre("everyone")) << "who does not speak asks no more";
  driver->release();
}

TEST_F(NcclDeadlineTest, operation_that_ends_before_its_rank_may_speak_ends_well) {
  leave_it_to_others();
  const auto communicator = make();
  driver->hold();
  Work late = start(*communicator, {});

  std::this_thread::sleep_for(150ms);
  driver->release();

  EXPECT_EQ(failure_of(late), "");
}

TEST_F(NcclDeadlineTest, launch_that_nccl_does_not_begin_is_told_of_in_turn) {
  leave_it_to_others();
  const auto communicator = make(20ms);
  api->polls_until_launched = -1;
  std::string words;

  std::jthread launching([&] { words = words_of([&] { start(*communicator, {}).wait(); }); });
  std::this_thread::sleep_for(150ms);  // the limit is 15 ms
  let_a_peer_speak();
  launching.join();

  EXPECT_THAT(words, HasSubstr("a peer has stopped: rank 0: all_reduce: not finished"));
}

TEST_F(NcclDeadlineTest, launch_that_nccl_does_not_begin_names_who_is_missing) {
  record->missing = "rank 1 on node1 (last started operation 0)";
  const auto communicator = make(20ms);
  api->polls_until_launched = -1;

  EXPECT_THAT(words_of([&] { start(*communicator, {}).wait(); }),
              HasSubstr("NCCL has not started it after 15 ms; missing: rank 1 on node1"));
  EXPECT_THAT(asked(), ElementsAre("again"));
}

}  // namespace
}  // namespace sidestream::comm
