#include "comm/message_turn.hpp"

#include <gtest/gtest.h>

#include "tests/comm/thread_meeting.hpp"

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;

TEST(MessageTurnTest, nodes_speak_one_after_another) {
  test::Meeting meeting(1);
  NodeBoard board(meeting.of(0));

  EXPECT_TRUE(has_turn({.node = 0}, &board, 0ms));
  EXPECT_FALSE(has_turn({.node = 1}, &board, 200ms));
  EXPECT_TRUE(has_turn({.node = 1}, &board, 250ms));
  EXPECT_FALSE(has_turn({.node = 3}, &board, 700ms));
}

TEST(MessageTurnTest, ranks_without_a_board_speak_one_after_another) {
  EXPECT_TRUE(has_turn({.rank = 0}, nullptr, 0ms));
  EXPECT_FALSE(has_turn({.rank = 1}, nullptr, 200ms));
  EXPECT_TRUE(has_turn({.rank = 1}, nullptr, 250ms));
}

TEST(MessageTurnTest, in_the_end_everybody_may_speak) {
  EXPECT_FALSE(has_turn({.rank = 500}, nullptr, 2400ms));
  EXPECT_TRUE(has_turn({.rank = 500}, nullptr, 2500ms));
}

}  // namespace
}  // namespace sidestream::comm
