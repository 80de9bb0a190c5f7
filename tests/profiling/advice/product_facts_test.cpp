// Matrix products among the operators of a trace.
#include <gtest/gtest.h>

#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

TEST(ProductFactsTest, a_product_inside_of_another_operator_counts_once) {
  const auto products = [](bool with_outer) {
    const std::string arguments =
        R"("Input Dims":[[64,64],[64,64]],"Input type":["float","float"])";
    StepShape shape{.extra_us = 9000};
    shape.extras = {{.category = "cpu_op",
                     .name = "aten::mm",
                     .at_us = 10,
                     .duration_us = 4000,
                     .arguments = arguments}};
    if (with_outer)
      shape.extras.push_back({.category = "cpu_op",
                              .name = "sidestream::linear",
                              .duration_us = 9000,
                              .arguments = arguments});
    return *facts_of(shape).products;
  };
  EXPECT_DOUBLE_EQ(products(true).flops, products(false).flops);
  EXPECT_DOUBLE_EQ(products(true).fp32_flops, products(false).fp32_flops);
  EXPECT_DOUBLE_EQ(products(true).host_ns, products(false).host_ns);
}

}  // namespace
}  // namespace sidestream::advice
