// What traces say about themselves and cannot be.
#include "profiling/analysis/input_warnings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiling/analysed.hpp"

namespace sidestream::analysis {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kStep = test::complete_event("user_annotation", "ProfilerStep#1", "0", "1000000");

std::string figures(const std::string& flops_per_token) {
  return R"("sidestream":{"flops_per_token":)" + flops_per_token +
         R"(,"tokens_per_step":1000,"peak_flops_per_s":1e12},)";
}

TEST(InputWarningsTest, an_mfu_above_the_peak_is_told) {
  const test::Analysed wrong(kStep, figures("1e12")), right(kStep, figures("5e8"));

  EXPECT_THAT(wrong.set.warnings, Contains(HasSubstr("an MFU of 1e+05 % cannot be")));
  ASSERT_TRUE(right.all.model.mfu);
  EXPECT_NEAR(*right.all.model.mfu, 0.5, 1e-9);
  EXPECT_THAT(right.set.warnings, Not(Contains(HasSubstr("MFU"))));
}

TEST(InputWarningsTest, a_rank_beyond_the_world_is_told) {
  const core::ScratchFolder scratch;
  for (const int rank : {1, 2}) {
    const auto file = test::write_text(scratch / ("rank-" + std::to_string(rank) + ".json"),
                                       test::trace_of(kStep, rank, 2));
    trace::TraceSet set = trace::load_traces(trace::find_traces({file}), {.threads = 1});
    analyse(set, 1);

    const auto told = HasSubstr("rank-2.json: rank 2 of 2: one of both is wrong");
    if (rank == 2) EXPECT_THAT(set.warnings, Contains(told));
    if (rank == 1) EXPECT_THAT(set.warnings, Not(Contains(told)));
  }
}

}  // namespace
}  // namespace sidestream::analysis
