#include "profiling/report/urgent_lines.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sidestream::report {
namespace {

TEST(UrgentLinesTest, many_ranks_are_counted_behind_the_first) {
  analysis::Hang hang{.without_records = {1, 3}};
  for (int rank = 0; rank < 9; ++rank) hang.ranks.push_back({.rank = rank, .phase = "forward"});
  analysis::Analysis all;
  all.hang = hang;
  const std::string few = fault_lines(all).front();
  for (int rank = 10; rank < 110; ++rank) all.hang->without_records.push_back(rank);
  const std::string many = fault_lines(all).front();

  EXPECT_TRUE(few.starts_with("Ranks 1 and 3 left no recording")) << few;
  EXPECT_NE(few.find("rank 7 in forward for 0 ns; 1 more in a step when"), few.npos) << few;
  EXPECT_TRUE(many.starts_with("Ranks 1, 3, 10, 11, 12, 13, 14, 15 and 94 more left no")) << many;
}

}  // namespace
}  // namespace sidestream::report
