// Matrix products among the operators of a trace.
#include <gtest/gtest.h>

#include "profiling/advice/event_facts.hpp"
#include "profiling/advice/matrix_kernels.hpp"
#include "profiling/advice/operation_kind.hpp"
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

// One list of products: what has FLOPs has a shape to look at, and the name of a product.
TEST(ProductFactsTest, every_product_is_one_for_all_that_ask) {
  for (const char* name : {"aten::mm", "aten::_scaled_mm", "aten::_int_mm"}) {
    EXPECT_TRUE(is_product(name)) << name;
    const auto product = product_of(name, "[[16,32],[32,24]]");
    ASSERT_TRUE(product) << name;
    EXPECT_DOUBLE_EQ(product->flops, 2.0 * 16 * 32 * 24) << name;
    EXPECT_EQ(product->divisor, 8) << name;
  }
  for (const char* name : {"aten::addbmm", "aten::baddbmm"}) {
    EXPECT_TRUE(is_product(name)) << name;
    EXPECT_DOUBLE_EQ(product_of(name, "[[5],[4,16,32],[4,32,24]]")->flops, 2.0 * 4 * 16 * 32 * 24);
  }
  EXPECT_TRUE(is_product("aten::_addmm_activation"));
  EXPECT_FALSE(product_of("aten::_addmm_activation", "[[24],[15,32],[32,24]]")->aligned);
  EXPECT_TRUE(is_product("sidestream::mlp_backward"));
  for (const char* name : {"aten::mv", "aten::_scaled_dot_product_flash_attention", "aten::add"}) {
    EXPECT_FALSE(is_product(name)) << name;
    EXPECT_FALSE(product_of(name, "[[2,4,16,8],[2,4,32,8],[2,4,32,8]]")) << name;
  }
}

TEST(ProductFactsTest, kernels_of_convolutions_are_those_of_products_with_such_a_word) {
  for (const char* name :
       {"sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32",
        "void "
        "cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_128x128>(Params)",
        "void implicit_convolve_sgemm<float, 128>(int)",
        "void cutlass::Kernel<cutlass::conv::kernel::ImplicitGemm>(Params)"})
    EXPECT_TRUE(is_convolution_kernel(name)) << name;
  for (const char* name : {"ampere_sgemm_128x64_nn", "void at::native::convert_kernel<float>(int)",
                           "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm>(Params)"})
    EXPECT_FALSE(is_convolution_kernel(name)) << name;
}

// The first step of a run is none of the mean step.
TEST(OptimizerFactsTest, time_is_of_the_steps_that_count) {
  const auto range = [](const std::string& name, int start_us, int length_us) {
    return test::complete_event("user_annotation", name, std::to_string(start_us),
                                std::to_string(length_us));
  };
  const Facts facts = facts_of_text(
      test::trace_of(range("ProfilerStep#0", 0, 100) + "," + range("optimizer", 10, 80) + "," +
                     range("ProfilerStep#1", 100, 100) + "," + range("optimizer", 110, 20) + "," +
                     range("ProfilerStep#2", 200, 100) + "," + range("optimizer", 210, 20)));

  EXPECT_DOUBLE_EQ(facts.optimizer->time_ns, 20'000);
  EXPECT_DOUBLE_EQ(facts.phase_ns.at("optimizer"), 20'000);
}

}  // namespace
}  // namespace sidestream::advice
