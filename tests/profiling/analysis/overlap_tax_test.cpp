// What collectives cost the kernels beside them, on a trace by hand.
#include "profiling/analysis/overlap_tax.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiling/report/text_report.hpp"
#include "tests/profiling/analysed.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

std::string kernel(const std::string& name, int time, int duration, int stream) {
  return complete_event("kernel", name, std::to_string(time), std::to_string(duration),
                        R"("grid":[1,1,1],"block":[1,1,1],"stream":)" + std::to_string(stream));
}

// Four calls of 100 us alone, two of 150 us beside a collective of 180 us.
TEST(OverlapTaxTest, kernels_beside_a_collective_against_themselves_alone) {
  std::string events = complete_event("user_annotation", "ProfilerStep#3", "0", "3000");
  for (int i = 0; i < 4; ++i) events += "," + kernel("k", i * 200, 100, 7);
  for (int i = 0; i < 2; ++i) {
    events += "," + kernel("k", 1000 + i * 200, 150, 7);
    events += "," + kernel("rcclKernel_AllReduce", 1000 + i * 200, 180, 9);
  }

  const test::Analysed analysed(events);
  const OverlapTax& tax = analysed.all.tax;

  ASSERT_EQ(tax.kernels.size(), 1u);
  EXPECT_EQ(tax.kernels[0].name, "k");
  EXPECT_EQ(tax.kernels[0].alone, 4);
  EXPECT_EQ(tax.kernels[0].beside, 2);
  EXPECT_DOUBLE_EQ(tax.kernels[0].mean_beside_ns, 150'000);
  EXPECT_EQ(tax.hidden_ns, 300'000);
  EXPECT_EQ(tax.tax_ns, 100'000);
  EXPECT_EQ(tax.net_gain_ns(), 200'000);
}

// Two ranks with a step of 1 ms each, whose collective hides the kernel beside it; `beside_us` is
// what that one takes, 100 us alone. Behind the step everything is slower and counts for nothing.
Analysis two_ranks(int beside_us, trace::TraceSet& set) {
  const core::ScratchFolder scratch;
  for (int rank = 0; rank < 2; ++rank) {
    std::string events = complete_event("user_annotation", "ProfilerStep#3", "0", "1000");
    for (const int time : {0, 200, 400}) events += "," + kernel("k", time, 100, 7);
    events +=
        "," + kernel("k", 600, beside_us, 7) + "," + kernel("rcclKernel_AllReduce", 600, 200, 9);
    events += "," + kernel("k", 5000, 900, 7) + "," + kernel("rcclKernel_AllReduce", 5000, 900, 9);
    test::write_text(scratch / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, 2));
  }
  set = trace::load_traces(trace::find_traces({scratch.path()}), {.threads = 1});
  return analyse(set, 1);
}

TEST(OverlapTaxTest, figures_are_of_one_rank_inside_its_steps) {
  trace::TraceSet set;
  const Analysis all = two_ranks(150, set);

  EXPECT_EQ(all.tax.hidden_ns, 150'000);
  EXPECT_EQ(all.tax.tax_ns, 50'000);
  EXPECT_EQ(all.tax.beside_ns, 150'000);
  EXPECT_EQ(all.tax.judged_ns, 150'000);
  EXPECT_EQ(all.tax.kernels.at(0).beside, 2) << "of all ranks";
  EXPECT_THAT(report::text_report(all, {}, {.width_columns = 300}),
              ::testing::HasSubstr(
                  "hides 150 us of a rank's communication and costs its compute 50 us: net "
                  "100 us"));
}

// As in the table of steps and in that of collectives.
TEST(OverlapTaxTest, only_steps_without_tags_count) {
  std::string events;
  for (int step = 0; step < 6; ++step) {
    const int begin = step * 10'000, length = step == 0 ? 9'000 : 1'000;
    events += (step == 0 ? "" : ",") +
              complete_event("user_annotation", "ProfilerStep#" + std::to_string(step),
                             std::to_string(begin), std::to_string(length)) +
              "," + kernel("k", begin, length - 100, 7) + "," +
              kernel("rcclKernel_AllReduce", begin + 100, length - 300, 9);
  }
  const core::ScratchFolder scratch;
  test::write_text(scratch / "rank-0.json", test::trace_of(events));
  trace::TraceSet set = trace::load_traces(trace::find_traces({scratch.path()}), {.threads = 1});

  const Analysis all = analyse(set, 1);

  std::int64_t hidden_ns = 0;
  const auto plain = plain_steps(all.ranks);
  for (const StepRow* step : plain) hidden_ns += step->budget.window_ns - 300'000;
  ASSERT_LT(plain.size(), 6u);
  EXPECT_EQ(all.tax.hidden_ns, hidden_ns);
}

TEST(OverlapTaxTest, kernels_that_are_faster_beside_collectives_are_no_gain) {
  trace::TraceSet set;
  const Analysis all = two_ranks(90, set);

  EXPECT_EQ(all.tax.tax_ns, 0);
  EXPECT_LT(all.tax.kernels.at(0).tax_ns(), 0);
  EXPECT_EQ(all.tax.net_gain_ns(), all.tax.hidden_ns);
  EXPECT_THAT(report::text_report(all, {}, {.width_columns = 300}),
              ::testing::HasSubstr("a cost to its compute: none measured"));
}

}  // namespace
}  // namespace sidestream::analysis
