#include "profiling/advice/roofline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiling/advice/operation_maker.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

std::string cause_of(const Json& one, const Facts& facts) {
  return place_operation(one, facts, {}).cause;
}

TEST(RooflineTest, below_the_ridge_memory_is_the_roof) {
  const auto point =
      place_operation(in_fp32(operation("x", 100, 10, 1e11, 5e10)), machine(), {});  // 2 FLOP/B

  EXPECT_EQ(point.bound, "memory");
  EXPECT_DOUBLE_EQ(*point.intensity, 2);
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.5);  // of 2 x 100 GB/s = 200 GFLOP/s
}

TEST(RooflineTest, above_the_ridge_compute_is) {
  const auto point =
      place_operation(in_fp32(operation("gemm", 100, 10, 8e11, 1e10)), machine(), {});  // 80

  EXPECT_EQ(point.bound, "compute");
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.8);
  EXPECT_EQ(point.cause, "compute-bound and near the roof");
}

// Its FLOPs count in full, and half of them are not computed: 45 % of the peak is not 90.
TEST(RooflineTest, causal_attention_is_held_against_what_it_computes) {
  const auto point = place_operation(
      in_fp32(operation("sidestream::attention", 100, 10, 8e11, 1e9)), machine(), {});

  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.4);
  EXPECT_DOUBLE_EQ(*point.intensity, 400);
  EXPECT_DOUBLE_EQ(*point.flops_per_s, 8e11);  // as they are counted
}

// A kernel of a library, known by the operator that launched it, unless the hardware has counted.
TEST(RooflineTest, causal_attention_on_a_gpu_is_held_against_what_it_computes) {
  Json kernel = operation("cudnn_generated_fort_native_sdpa_sm90", 100, 10, 8e11, 1e9);
  kernel["shapes"] = {shaped("sidestream::attention", "[[8, 1024, 2304]]", "float")};
  EXPECT_DOUBLE_EQ(*place_operation(kernel, machine(), {}).share_of_roof, 0.4);

  const NcuCounters counted{.launches = 1, .duration_s = 0.01, .flops = 8e9, .tensor_percent = 0};
  const std::string name = kernel["name"];
  EXPECT_DOUBLE_EQ(*place_operation(kernel, machine(), {{name, counted}}).share_of_roof, 0.8);
}

TEST(RooflineTest, the_roof_is_that_of_the_type_computed_with) {
  Facts facts = machine();
  facts.ceilings->flops_per_s = {{"fp32", 1e11}, {"tf32", 5e11}, {"bf16", 1e12}};
  Json one = operation("gemm", 100, 10, 6e11, 1e9);
  one["shapes"] = {shaped("aten::mm", "[[64, 64], [64, 64]]", "c10::BFloat16")};
  EXPECT_DOUBLE_EQ(*place_operation(one, facts, {}).share_of_roof, 0.6);
  EXPECT_EQ(place_operation(one, facts, {}).dtype, "bf16");
  EXPECT_EQ(
      place_operation(operation("ampere_bf16_s16816gemm_bf16_128x64_nn", 1, 1, 1, 1), facts, {})
          .dtype,
      "bf16");
  EXPECT_EQ(place_operation(operation("ampere_sgemm_128x64_nn", 1, 1, 1, 1), facts, {}).dtype,
            "fp32");
  one = in_fp32(operation("sm80_xmma_gemm_f32f32_tf32f32_f32_nn", 100, 10, 4e11, 1e9));
  EXPECT_EQ(place_operation(one, facts, {}).dtype, "tf32");
}

TEST(RooflineTest, the_type_in_the_name_of_a_kernel) {
  struct Named {
    const char* kernel;
    const char* dtype;
  };
  for (const Named& one : {Named{"ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn", "fp16"},
                           {"turing_fp16_s1688gemm_fp16_128x64_sliced1x2_ldg8_f2f_nn", "fp16"},
                           {"turing_s1688gemm_fp16_128x128_ldg8_tn", "fp16"},
                           {"ampere_bf16_s16816gemm_bf16_128x64_nn", "bf16"},
                           {"ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_tn", "bf16"},
                           {"cutlass_80_tensorop_s1688gemm_128x128_nn", "tf32"},
                           {"cutlass_80_tensorop_s1688tf32gemm_256x64_nn", "tf32"},
                           {"sm80_xmma_gemm_f32f32_tf32f32_f32_nn", "tf32"},
                           {"sm90_xmma_gemm_f16f16_f16f32_f32_tn", "fp16"},
                           {"volta_h884gemm_128x64_nn", "fp16"},
                           {"volta_fp16_s884gemm_fp16_128x64_nn", "fp16"},
                           {"ampere_sgemm_128x64_nn", "fp32"},
                           {"volta_dgemm_128x64_nn", "fp64"},
                           {"softmax_forward", ""}})
    EXPECT_EQ(place_operation(operation(one.kernel, 1, 1, 1, 1), machine(), {}).dtype, one.dtype)
        << one.kernel;
}

// cuDNN calls the instructions f16, whichever of the two types they take.
TEST(RooflineTest, attention_of_cudnn_has_the_type_of_its_inputs_or_of_the_run) {
  for (const char* kernel :
       {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_1x4x1_"
        "cga1x1x1",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_f16_knob_31_64x128x128_1x1x1",
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_7_64x64x64_4x1x1"}) {
    Json one = operation(kernel, 100, 10, 6e11, 1e9);
    Facts facts = machine();
    EXPECT_EQ(place_operation(one, facts, {}).dtype, "");

    facts.config = {{"precision", "bf16"}};
    EXPECT_EQ(place_operation(one, facts, {}).dtype, "bf16");
    facts.config = {{"precision", "fp16"}};
    EXPECT_EQ(place_operation(one, facts, {}).dtype, "fp16");
    facts.config = {{"precision", "tf32"}};
    EXPECT_EQ(place_operation(one, facts, {}).dtype, "");

    one["shapes"] = {shaped("aten::_cudnn_attention_forward",
                            "[[8, 12, 1024, 64], [8, 12, 1024, 64]]", "c10::BFloat16")};
    EXPECT_EQ(place_operation(one, facts, {}).dtype, "bf16");
  }
}

TEST(RooflineTest, without_a_type_there_is_no_compute_roof) {
  EXPECT_FALSE(
      place_operation(operation("gemm", 100, 10, 8e11, 1e10), machine(), {}).share_of_roof);
}

TEST(RooflineTest, above_the_roof_the_roof_is_wrong) {
  const std::string cause = cause_of(in_fp32(operation("gemm", 100, 10, 9e12, 1e10)), machine());
  EXPECT_THAT(cause, HasSubstr("the roof is too low (test)"));
  EXPECT_THAT(cause, Not(HasSubstr("near")));
}

TEST(RooflineTest, shapes_are_those_of_the_operation) {
  Facts facts = machine();  // of the whole run: another product
  facts.products = ProductFacts{.flops = 10, .unaligned_flops = 9, .unaligned_shape = "[[1, 77]]"};
  const Json aligned = in_fp32(operation("gemm", 100, 10, 1e11, 1e9));
  EXPECT_THAT(cause_of(aligned, facts), Not(HasSubstr("multiples")));
  Json one = operation("gemm", 100, 10, 1e11, 1e9);
  one["shapes"] = {shaped("aten::mm", "[[64, 64], [64, 50257]]", "float", 9),
                   shaped("aten::mm", "[[64, 64], [64, 64]]", "float", 1)};
  EXPECT_THAT(cause_of(one, facts), HasSubstr("50257"));
}

TEST(RooflineTest, a_product_in_the_arguments_makes_no_product) {
  Json one = operation("void fbgemm_gpu::lookup_kernel<float>(fbgemm_gpu::FixedDivisor, int)", 100,
                       10, 1e11, 1e9);
  one["shapes"] = {shaped("aten::mm", "[[64, 64], [64, 50257]]", "float")};
  EXPECT_THAT(cause_of(one, machine()), Not(HasSubstr("multiples")));
}

TEST(RooflineTest, another_type_explains_no_distance_to_its_own_roof) {
  Facts facts = machine();
  facts.ceilings->flops_per_s["bf16"] = 4e12;
  const std::string small = cause_of(in_fp32(operation("gemm", 0.3, 10, 1.6e11, 1e9)), facts);
  EXPECT_THAT(small, HasSubstr("too small to fill the machine"));
  EXPECT_THAT(small, HasSubstr("computed in fp32; the roof of bf16 is 4.0 times as high"));
  EXPECT_THAT(cause_of(in_fp32(operation("gemm", 100, 10, 8e11, 1e9)), facts),
              HasSubstr("near the roof; computed in fp32"));
}

TEST(RooflineTest, what_takes_long_at_its_roof_is_not_too_small) {
  const Json long_enough = operation("scan", 0.4, 10, nullptr, 3.8e10);  // 40 us, 15 at the roof
  EXPECT_THAT(cause_of(long_enough, machine()), Not(HasSubstr("too small")));
}

TEST(RooflineTest, occupancy_threads_locks_and_denormals_are_causes) {
  Json one = in_fp32(operation("x", 100, 10, 1e10, 1e9));
  one["occupancy_percent"] = 12;
  EXPECT_THAT(cause_of(one, machine()), HasSubstr("occupancy 12 %"));
  one.erase("occupancy_percent");
  Facts host = machine();
  host.on_device = false;
  host.config = {{"flush-denormals", "off"}};
  EXPECT_THAT(cause_of(one, host), HasSubstr("denormal"));
  host.step = StepFacts{.window_ns = 100, .idle_lock_ns = 20};
  EXPECT_THAT(cause_of(one, host), HasSubstr("locks in 20 %"));
  host.environment = {
      {"cores", "2"}, {"threads_per_rank", "4"}, {"world_size", "2"}, {"nodes", "1"}};
  EXPECT_THAT(cause_of(one, host), HasSubstr("4.0 computing threads a core"));
}

TEST(RooflineTest, low_occupancy_names_its_limiter) {
  Json one = in_fp32(operation("x", 100, 10, 1e10, 1e9));
  one["occupancy_percent"] = 12;
  Facts facts = machine();
  facts.kernels = KernelFacts{.limiters = {{"x", "registers"}}};
  EXPECT_THAT(cause_of(one, facts), HasSubstr("occupancy 12 % limited by registers, estimated"));
  Json report = {{"top_ops", {one}}};
  add_rooflines(report, facts, {});
  EXPECT_EQ(report["top_ops"][0]["occupancy_limiter"], "registers");
}

TEST(RooflineTest, copies_before_products_name_the_layout) {
  Facts facts = machine();
  const Json copy = operation("aten::copy_", 100, 10, nullptr, 7e10);
  facts.layout_copies = LayoutCopyFacts{.copies_ns = 5e6, .before_products_ns = 4e6};
  EXPECT_THAT(cause_of(copy, facts), HasSubstr("transposed layout"));
  EXPECT_THAT(cause_of(copy, facts), HasSubstr("4 ms a step"));
  facts.layout_copies->before_products_ns = 1e6;
  EXPECT_THAT(cause_of(copy, facts), Not(HasSubstr("transposed")));
}

TEST(RooflineTest, kernels_that_turn_tensors_round_name_the_layout) {
  EXPECT_THAT(
      cause_of(operation("void cudnn::ops::nchwToNhwcKernel<float>(int)", 1, 10, nullptr, nullptr),
               machine()),
      HasSubstr("channels-first"));
}

TEST(RooflineTest, short_kernels_and_collectives_have_bounds_of_their_own) {
  EXPECT_EQ(place_operation(operation("x", 0.01, 10, nullptr, nullptr), machine(), {}).bound,
            "launch");
  EXPECT_EQ(
      place_operation(operation("ncclDevKernel_AllReduce", 10, 1, nullptr, nullptr), machine(), {})
          .bound,
      "communication");
}

TEST(RooflineTest, copies_and_collectives_are_held_against_links) {
  Facts facts = machine();
  facts.ceilings->host_to_device_bytes_per_s = 5e10;
  facts.ceilings->link_bytes_per_s = 1e11;
  facts.collectives = CollectiveFacts{.bus_bytes_per_s = 4e10};
  const auto copy = place_operation(
      operation("Memcpy HtoD (Pageable -> Device)", 10, 1, nullptr, 1e10), facts, {});
  EXPECT_DOUBLE_EQ(*copy.share_of_roof, 0.2);
  EXPECT_THAT(copy.cause, HasSubstr("not pinned; 20 % of what was measured"));
  const auto sum =
      place_operation(operation("ncclDevKernel_AllReduce", 10, 1, nullptr, nullptr), facts, {});
  EXPECT_DOUBLE_EQ(*sum.share_of_roof, 0.4);
  EXPECT_THAT(sum.cause, HasSubstr("40 GB/s on the bus, 40 % of the link"));

  facts.collectives->bus_of_name = {{"barrier", {}},
                                    {"allreduce", {.bytes = 5e9, .transfer_ns = 1e9}}};
  const auto share_of = [&](const char* name) {
    return place_operation(operation(name, 10, 1, nullptr, nullptr), facts, {}).share_of_roof;
  };
  EXPECT_EQ(share_of("barrier"), std::nullopt) << "it moves nothing";
  EXPECT_DOUBLE_EQ(share_of("allreduce").value(), 0.05);
}

TEST(RooflineTest, the_optimizer_phase_is_held_against_what_adamw_moves) {
  Facts facts = machine();
  facts.on_device = false;
  facts.environment = {{"parameters", "1000000"}};
  const auto point = place_operation(operation("optimizer", 10, 10, nullptr, nullptr), facts, {});
  EXPECT_NEAR(*point.bytes_per_s, 28e6 / 1e-3, 1);
  EXPECT_NEAR(*point.share_of_roof, 0.28, 1e-9);
  EXPECT_NEAR(*point.flops_per_s, 14e6 / 1e-3, 1);
  EXPECT_EQ(point.bound, "memory");
}

TEST(RooflineTest, what_is_not_measured_is_not_guessed) {
  const auto point =
      place_operation(operation("mystery", 100, 10, nullptr, nullptr), machine(), {});

  EXPECT_EQ(point.bound, "");
  EXPECT_EQ(point.cause, "");
  EXPECT_FALSE(point.share_of_roof);
}

TEST(RooflineTest, operations_without_arithmetic_are_held_against_the_bandwidth) {
  const auto fast = place_operation(operation("copy_", 100, 10, nullptr, 7e10), machine(), {});
  EXPECT_EQ(fast.bound, "memory");
  EXPECT_DOUBLE_EQ(*fast.share_of_roof, 0.7);
  EXPECT_THAT(fast.cause, HasSubstr("only fewer bytes help"));
  const auto slow =
      place_operation(operation("record_param_comms", 100, 10, nullptr, 1e3), machine(), {});
  EXPECT_EQ(slow.bound, "");
  EXPECT_THAT(slow.cause, HasSubstr("less than 1 % of the memory roof"));
}

TEST(RooflineTest, flops_known_of_some_calls_are_those_of_each_call) {
  Json one = in_fp32(operation("gemm", 100, 10, 8e11, 1e10));  // 10 ms and 8 GFLOP a call
  one["flops"] = 8e9;                                          // known of one call of ten
  NcuCounters counters{.launches = 1, .duration_s = 0.02, .dram_bytes = 1e8};
  EXPECT_DOUBLE_EQ(place_operation(one, machine(), {{"gemm", counters}}).flops_per_s.value(),
                   8e9 / 0.02);
}

TEST(RooflineTest, report_gets_bound_and_cause_or_null) {
  Json report = {{"top_ops",
                  {in_fp32(operation("gemm", 100, 10, 8e11, 1e10)),
                   operation("mystery", 100, 10, nullptr, nullptr)}}};

  add_rooflines(report, machine(), {});

  EXPECT_EQ(report["top_ops"][0]["roofline_bound"], "compute");
  EXPECT_EQ(report["top_ops"][0]["dtype"], "fp32");
  EXPECT_TRUE(report["top_ops"][1]["roofline_bound"].is_null());
}

}  // namespace
}  // namespace sidestream::advice
