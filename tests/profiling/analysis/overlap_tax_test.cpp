// What collectives cost the kernels beside them, on a trace by hand.
#include "profiling/analysis/overlap_tax.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace sidestream::analysis
