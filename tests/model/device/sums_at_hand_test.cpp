#include "model/device/sums_at_hand.hpp"

#include <gtest/gtest.h>

namespace sidestream::model::device {
namespace {

using torch::Tensor;

struct SumsAtHandTest : testing::Test {
  const Tensor rows = torch::ones({2, 3, 4}), sums = torch::full({4}, 6.0f);
  SumsAtHand at_hand;
};

TEST_F(SumsAtHandTest, take_has_what_was_offered_once) {
  at_hand.offer(rows, sums);
  EXPECT_TRUE(at_hand.take(rows).is_same(sums));
  EXPECT_FALSE(at_hand.take(rows).defined());
}

TEST_F(SumsAtHandTest, take_knows_a_view_of_all_of_it_and_another_handle) {
  at_hand.offer(rows, sums);
  EXPECT_TRUE(at_hand.take(rows.view({6, 4})).is_same(sums));
  at_hand.offer(rows, sums);
  EXPECT_TRUE(at_hand.take(rows.detach()).is_same(sums));
}

TEST_F(SumsAtHandTest, take_has_none_of_other_rows) {
  const auto taken = [&](const Tensor& of) {
    at_hand.offer(rows, sums);
    return at_hand.take(of).defined();
  };
  EXPECT_FALSE(taken(rows.clone()));
  EXPECT_FALSE(taken(rows[0]));
  EXPECT_FALSE(taken(rows[1]));
  EXPECT_FALSE(taken(rows.view({2, 12}))) << "sums of other columns";
  EXPECT_TRUE(taken(rows));
}

TEST_F(SumsAtHandTest, take_has_none_of_rows_that_were_written_since) {
  at_hand.offer(rows, sums);
  rows.add_(1);
  EXPECT_FALSE(at_hand.take(rows).defined());
}

TEST_F(SumsAtHandTest, take_has_none_of_what_came_to_lie_in_the_same_place) {
  std::array<float, 24> memory{};
  at_hand.offer(torch::from_blob(memory.data(), {6, 4}), sums);
  EXPECT_FALSE(at_hand.take(torch::from_blob(memory.data(), {6, 4})).defined());
}

TEST_F(SumsAtHandTest, the_last_offer_counts) {
  const Tensor later = rows.clone(), others = sums.clone();
  at_hand.offer(rows, sums);
  at_hand.offer(later, others);
  EXPECT_TRUE(at_hand.take(later).is_same(others));
}

}  // namespace
}  // namespace sidestream::model::device
