// Which collective is which, on traces by hand without sequence numbers.
#include "profiling/analysis/collective_match.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

constexpr int kStepUs = 1000;
constexpr int kFirstStep = 3;

class CollectiveMatchTest : public ::testing::Test {
 protected:
  // `counts`: kernels of each step. The device is a step behind its host.
  void add_rank(int rank, int ranks, std::initializer_list<int> counts, int first = kFirstStep) {
    std::string events;
    int step = first, launches = 0;
    for (const int count : counts) {
      const int begin_us = step * kStepUs;
      events += (events.empty() ? "" : ",") +
                complete_event("user_annotation", "ProfilerStep#" + std::to_string(step),
                               std::to_string(begin_us), std::to_string(kStepUs));
      for (int i = 0; i < count; ++i) {
        const std::string correlation = R"("correlation":)" + std::to_string(++launches);
        events += "," + complete_event("cuda_runtime", "cudaLaunchKernelExC",
                                       std::to_string(begin_us + 100 * i), "5", correlation);
        events +=
            "," + complete_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                 std::to_string(begin_us + kStepUs + 100 * i + 10 * rank),
                                 std::to_string(50 - 10 * rank), R"("stream":9,)" + correlation);
      }
      ++step;
    }
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, ranks));
  }

  Analysis look() {
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}), {.threads = 1});
    return analyse(set_, 1);
  }

  bool warns_of(const std::string& text) const {
    for (const std::string& warning : set_.warnings) {
      if (warning.find(text) != std::string::npos) return true;
    }
    return false;
  }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
};

TEST_F(CollectiveMatchTest, counts_that_differ_in_one_step_cost_that_step) {
  add_rank(0, 2, {2, 2, 2, 2});
  add_rank(1, 2, {2, 3, 2});

  const Analysis all = look();

  ASSERT_EQ(all.matches.matched.size(), 4u);
  for (const MatchedCollective& one : all.matches.matched) {
    EXPECT_EQ(one.transfer_ns, 40'000);
    EXPECT_EQ(one.parts.at(1).start_ns - one.parts.at(0).start_ns, 10'000);
  }
  EXPECT_TRUE(warns_of("4 of 8 collectives of stream#0 are not matched"));
}

TEST_F(CollectiveMatchTest, as_many_of_other_steps_are_no_match) {
  add_rank(0, 2, {2, 2}, 10);
  add_rank(1, 2, {2, 2}, 12);

  EXPECT_TRUE(look().matches.matched.empty());
  EXPECT_TRUE(warns_of("ranks have different steps: rank 0 10 to 11, rank 1 12 to 13"));
  EXPECT_TRUE(warns_of("none of one rank has the number of one of another"));
}

TEST_F(CollectiveMatchTest, as_many_of_overlapping_steps_match_where_they_overlap) {
  add_rank(0, 2, {2, 2}, 10);
  add_rank(1, 2, {2, 2}, 11);

  const Analysis all = look();

  ASSERT_EQ(all.matches.matched.size(), 2u);
  for (const MatchedCollective& one : all.matches.matched)
    EXPECT_EQ(one.parts.at(1).start_ns - one.parts.at(0).start_ns, 10'000);
}

TEST_F(CollectiveMatchTest, counts_that_differ_in_all_steps_leave_nothing) {
  add_rank(0, 2, {2, 2});
  add_rank(1, 2, {3, 1, 2});

  EXPECT_TRUE(look().matches.matched.empty());
  EXPECT_TRUE(warns_of("collectives of stream#0 cannot be matched"));
}

// Rank 0 was recorded from one collective before its first step on, rank 1 to one behind its last.
class CutCollectivesTest : public CollectiveMatchTest {
 protected:
  static constexpr int kSteps = 12;

  static std::string collective(const std::string& operation, int start_us, int end_us,
                                int launch) {
    const std::string correlation = R"("correlation":)" + std::to_string(launch);
    return "," +
           complete_event("cuda_runtime", "cudaLaunchKernelExC", std::to_string(start_us - 50), "5",
                          correlation) +
           "," +
           complete_event("kernel", "ncclDevKernel_" + operation + "_f32_RING_LL",
                          std::to_string(start_us), std::to_string(end_us - start_us),
                          R"("stream":9,)" + correlation);
  }

  // Each step has these, 2 ms apart; rank 1 comes 1 ms late to the first of them.
  void add_rank(int rank, const std::vector<std::string>& operations) {
    std::string events;
    int launch = 0;
    for (int step = 0; step < kSteps; ++step) {
      const int begin_us = 10'000 * (step + 1);
      events += (events.empty() ? "" : ",") +
                complete_event("user_annotation", "ProfilerStep#" + std::to_string(step + 10),
                               std::to_string(begin_us), "10000");
      int at_us = begin_us + 1000;
      for (const std::string& operation : operations) {
        const bool late = rank == 1 && at_us == begin_us + 1000;
        events += collective(operation, at_us + (late ? 1000 : 0), at_us + 1900, ++launch);
        at_us += 2000;
      }
    }
    const int cut_us = rank == 0 ? 8000 : 10'000 * (kSteps + 1) + 1000;
    const std::string& at_cut = rank == 0 ? operations.back() : operations.front();
    events += collective(at_cut, cut_us, cut_us + 900, ++launch);
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, 2));
  }
};

TEST_F(CutCollectivesTest, as_many_are_not_matched_across_steps) {
  for (int rank = 0; rank < 2; ++rank) add_rank(rank, std::vector(4, std::string("AllReduce_Sum")));

  const Analysis all = look();

  ASSERT_EQ(all.matches.matched.size(), 4u * kSteps);
  for (const MatchedCollective& one : all.matches.matched)
    EXPECT_EQ(one.parts.at(0).end_ns(), one.parts.at(1).end_ns());
  EXPECT_TRUE(warns_of("1 of 49 collectives of stream#0 are not matched"));
}

TEST_F(CutCollectivesTest, clocks_that_agree_stay_as_they_are) {
  for (int rank = 0; rank < 2; ++rank) add_rank(rank, std::vector(4, std::string("AllReduce_Sum")));

  look();

  EXPECT_EQ(set_.clock.method, "collectives");
  EXPECT_LE(std::abs(static_cast<double>(set_.clock.of(1).offset_ns)) / 1000,
            set_.clock.uncertainty_us.at(1));
  EXPECT_LE(set_.clock.uncertainty_us.at(1), 1000);
}

TEST_F(CutCollectivesTest, each_operation_has_its_own_kind) {
  for (int rank = 0; rank < 2; ++rank) add_rank(rank, {"AllGather", "ReduceScatter_Sum"});

  const Analysis all = look();

  ASSERT_EQ(all.matches.matched.size(), 2u * kSteps);
  for (const MatchedCollective& one : all.matches.matched) EXPECT_TRUE(one.same_kernel);
}

// Of three all-reduces a step rank 1 launches the third when its next step has begun.
class SlippingCollectivesTest : public CutCollectivesTest {
 protected:
  void add_ranks(int last_step_us) {
    for (int rank = 0; rank < 2; ++rank) {
      std::string events;
      int launch = 0;
      for (int step = 0; step < kSteps; ++step) {
        const int begin_us = 10'000 * (step + 1);
        events += (events.empty() ? "" : ",") +
                  complete_event("user_annotation", "ProfilerStep#" + std::to_string(step + 10),
                                 std::to_string(begin_us),
                                 std::to_string(step + 1 < kSteps ? 10'000 : last_step_us));
        for (const int at_us : {2000, 5000})
          events += collective("AllReduce_Sum", begin_us + at_us + 100 * rank,
                               begin_us + at_us + 900, ++launch);
        events += collective("AllReduce_Sum", begin_us + (rank == 0 ? 9500 : 10'100),
                             begin_us + 10'500, ++launch);
      }
      test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(events, rank, 2));
    }
  }

  void expect_order_of_launches() {
    const Analysis all = look();
    EXPECT_EQ(all.matches.matched.size(), 3u * kSteps);
    for (const MatchedCollective& one : all.matches.matched)
      EXPECT_EQ(one.parts.at(0).end_ns(), one.parts.at(1).end_ns());
    EXPECT_FALSE(warns_of("not matched"));
  }
};

TEST_F(SlippingCollectivesTest, the_last_one_behind_all_steps_leaves_the_order_as_it_is) {
  add_ranks(10'000);  // rank 0 has 3, 3, ..., 3 and rank 1 2, 3, ..., 3 and one more
  expect_order_of_launches();
}

TEST_F(SlippingCollectivesTest, the_last_one_in_the_last_step_leaves_the_order_as_it_is) {
  add_ranks(11'000);  // rank 1 has 2, 3, ..., 3, 4
  expect_order_of_launches();
}

TEST_F(CollectiveMatchTest, operations_that_differ_are_never_one_collective) {
  const auto events = [](const std::string& first, const std::string& second) {
    return complete_event("kernel", "ncclDevKernel_" + first, "10", "5", R"("stream":9)") + "," +
           complete_event("kernel", "ncclDevKernel_" + second, "20", "5", R"("stream":9)");
  };
  test::write_text(
      scratch_ / "rank-0.json",
      test::trace_of(events("ReduceScatter_Sum_f32_RING_LL", "AllGather_RING_LL"), 0, 2));
  test::write_text(scratch_ / "rank-1.json",
                   test::trace_of(events("AllGather_RING_LL", "ReduceScatter_Sum_f32_TREE"), 1, 2));

  EXPECT_TRUE(look().matches.matched.empty());
  EXPECT_TRUE(warns_of("cannot be matched: ranks have different ones in the same place"));
}

TEST_F(CollectiveMatchTest, names_that_differ_may_be_of_one_operation) {
  const auto write = [&](int rank, const std::string& name) {
    std::string events = complete_event("user_annotation", name, "10", "5");
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, 2));
  };
  write(0, "gloo:send");
  write(1, "gloo:recv");

  EXPECT_EQ(look().matches.matched.size(), 1u);
}

// The device is behind its host by another number of steps on every rank, and no launch is known.
TEST_F(CollectiveMatchTest, steps_of_kernels_without_launches_cost_no_match) {
  for (int rank = 0; rank < 2; ++rank) {
    std::string events;
    for (int step = 0; step < 3; ++step) {
      const int begin_us = kStepUs * (step + 1);
      events += (events.empty() ? "" : ",") +
                complete_event("user_annotation", "ProfilerStep#" + std::to_string(step + 5),
                               std::to_string(begin_us), std::to_string(kStepUs));
      for (int i = 0; i < 2; ++i)
        events += "," + complete_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                       std::to_string(begin_us + 300 * i + 500 + 300 * rank), "50",
                                       R"("stream":9)");
    }
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, 2));
  }

  EXPECT_EQ(look().matches.matched.size(), 6u);
}

// Numbered kernels of one stream, one every 100 us; a number below 0: it has none. Later ranks come
// 10 us later and wait as much less.
std::string numbered(int rank, std::initializer_list<int> numbers) {
  std::string events;
  int at_us = 1000;
  for (const int number : numbers) {
    std::string arguments = R"("stream":9)";
    if (number >= 0)
      arguments += R"(,"Collective name":"allreduce","Seq":)" + std::to_string(number);
    events += (events.empty() ? "" : ",") +
              complete_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                             std::to_string(at_us + 10 * rank), std::to_string(50 - 10 * rank),
                             arguments);
    at_us += 100;
  }
  return events;
}

// "7/7 -/8": numbers of the parts of each match.
std::string numbers_of(const Analysis& all) {
  std::string text;
  for (const MatchedCollective& one : all.matches.matched) {
    std::string parts;
    for (const CollectivePart& part : one.parts) {
      const auto* detail = all.set->timelines[part.timeline].collective(part.row);
      parts += (parts.empty() ? "" : "/") +
               (detail == nullptr ? std::string("-") : std::to_string(detail->sequence));
    }
    text += (text.empty() ? "" : " ") + parts;
  }
  return text;
}

TEST_F(CollectiveMatchTest, one_without_a_number_does_not_cost_the_numbers_of_the_others) {
  test::write_text(scratch_ / "rank-0.json", test::trace_of(numbered(0, {5, 6, -1, 8, 9}), 0, 2));
  test::write_text(scratch_ / "rank-1.json", test::trace_of(numbered(1, {6, 7, 8, 9}), 1, 2));

  const Analysis all = look();

  EXPECT_EQ(numbers_of(all), "6/6 -/7 8/8 9/9");
  for (const MatchedCollective& one : all.matches.matched) EXPECT_EQ(one.transfer_ns, 40'000);
  EXPECT_TRUE(warns_of("1 of 5 collectives of stream#0 are not matched"));
}

TEST_F(CollectiveMatchTest, numbers_that_differ_are_never_one_collective) {
  test::write_text(scratch_ / "rank-0.json", test::trace_of(numbered(0, {5, 7, 8, -1}), 0, 2));
  test::write_text(scratch_ / "rank-1.json", test::trace_of(numbered(1, {5, 6, 8, -1}), 1, 2));

  EXPECT_EQ(numbers_of(look()), "5/5 8/8 -/-");
}

TEST_F(CollectiveMatchTest, numbers_that_one_rank_lacks_are_said) {
  test::write_text(scratch_ / "rank-0.json", test::trace_of(numbered(0, {5, 6, 7, 8}), 0, 2));
  test::write_text(scratch_ / "rank-1.json", test::trace_of(numbered(1, {6, 7, 8, 9}), 1, 2));

  const Analysis all = look();

  EXPECT_EQ(numbers_of(all), "6/6 7/7 8/8");
  EXPECT_TRUE(warns_of("1 of 4 collectives of stream#0 are not matched: ranks have different"));
  ASSERT_EQ(all.collectives.size(), 1u);
  const CollectiveRow& row = all.collectives.front();
  EXPECT_EQ(row.unmatched_ns, 45'000) << "of 50 and 40 us the mean";
  EXPECT_EQ(row.transfer_ns.value() + row.wait_ns.value() + row.unmatched_ns, row.total_ns);
}

TEST_F(CollectiveMatchTest, numbers_that_all_ranks_have_leave_nothing_to_say) {
  for (int rank = 0; rank < 2; ++rank)
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(numbered(rank, {5, 6}), rank, 2));

  EXPECT_EQ(look().collectives.front().unmatched_ns, 0);
  EXPECT_FALSE(warns_of("not matched"));
}

TEST_F(CollectiveMatchTest, one_rank_of_several_without_a_collective_is_said) {
  add_rank(0, 2, {0, 0});
  look();
  EXPECT_TRUE(warns_of("one rank of 2, and not one collective"));
}

}  // namespace
}  // namespace sidestream::analysis
