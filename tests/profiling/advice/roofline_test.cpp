#include "profiling/advice/roofline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

Json operation(const std::string& name, double total_ms, std::int64_t calls, Json flops_per_s,
               Json bytes_per_s) {
  return {{"name", name},
          {"calls", calls},
          {"total_ns", total_ms * 1e6},
          {"share", 0.5},
          {"flops_per_s", flops_per_s},
          {"bytes_per_s", bytes_per_s}};
}

// 1 TFLOP/s and 100 GB/s: the ridge lies at 10 FLOP a byte.
Facts machine() {
  Facts facts{.on_device = true};
  facts.ceilings =
      Ceilings{.flops_per_s = {{"fp32", 1e12}}, .memory_bytes_per_s = 1e11, .source = "test"};
  return facts;
}

TEST(RooflineTest, below_the_ridge_memory_is_the_roof) {
  const auto point =
      place_operation(operation("x", 100, 10, 1e11, 5e10), machine(), {});  // 2 FLOP/B

  EXPECT_EQ(point.bound, "memory");
  EXPECT_DOUBLE_EQ(*point.intensity, 2);
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.5);  // of 2 x 100 GB/s = 200 GFLOP/s
}

TEST(RooflineTest, above_the_ridge_compute_is) {
  const auto point = place_operation(operation("gemm", 100, 10, 8e11, 1e10), machine(), {});  // 80

  EXPECT_EQ(point.bound, "compute");
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.8);
  EXPECT_EQ(point.cause, "compute-bound and near the roof");
}

TEST(RooflineTest, causes_come_from_evidence) {
  Facts facts = machine();
  facts.products =
      ProductFacts{.flops = 10, .unaligned_flops = 9, .unaligned_shape = "[[1, 50257]]"};
  EXPECT_THAT(place_operation(operation("gemm", 100, 10, 1e11, 1e9), facts, {}).cause,
              HasSubstr("50257"));
  facts.products = ProductFacts{.flops = 10, .fp32_flops = 10};
  facts.ceilings->flops_per_s["bf16"] = 4e12;
  EXPECT_EQ(place_operation(operation("gemm", 100, 10, 1e11, 1e9), facts, {}).cause,
            "fp32, where bf16 is at hand");
  EXPECT_EQ(place_operation(operation("scan", 0.1, 10, 1e11, 1e9), facts, {}).cause,
            "too small to fill the machine");
  EXPECT_EQ(place_operation(operation("x", 0.01, 10, nullptr, nullptr), facts, {}).bound, "launch");
  EXPECT_EQ(
      place_operation(operation("ncclDevKernel_AllReduce", 10, 1, nullptr, nullptr), facts, {})
          .bound,
      "communication");
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

TEST(RooflineTest, report_gets_bound_and_cause_or_null) {
  Json report = {
      {"top_ops",
       {operation("gemm", 100, 10, 8e11, 1e10), operation("mystery", 100, 10, nullptr, nullptr)}}};

  add_rooflines(report, machine(), {});

  EXPECT_EQ(report["top_ops"][0]["roofline_bound"], "compute");
  EXPECT_TRUE(report["top_ops"][1]["roofline_bound"].is_null());
}

TEST(FunctionNameTest, as_ncu_matches_them) {
  EXPECT_EQ(function_of("void at::native::vectorized_elementwise_kernel<4, float>(int, float)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(function_of("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
  EXPECT_EQ(function_of("void at::native::(anonymous "
                        "namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"),
            "vectorized_layer_norm_kernel");
}

TEST(FunctionNameTest, arguments_of_templates_do_not_count) {
  EXPECT_EQ(
      function_of(
          "void a::(anonymous namespace)::Copy<a::(anonymous namespace)::Opaque<16u>, int>(int)"),
      "Copy");
}

TEST(NcuCommandTest, names_these_kernels_and_no_collective) {
  const std::string command = ncu_command(
      {"void a::foo<int>(int)", "foo", "ncclDevKernel_AllReduce", "Memcpy HtoD", "bar"}, "prog");

  EXPECT_THAT(command, HasSubstr("'regex:^(foo|bar)$'"));
  EXPECT_THAT(command, Not(HasSubstr("nccl")));
  EXPECT_THAT(command, HasSubstr("dram__bytes.sum"));
  EXPECT_EQ(ncu_command({"ncclDevKernel_AllReduce", "aten::mm"}, "prog"), "");
}

class NcuCsvTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) {
    return test::write_text(scratch_ / "ncu.csv", text);
  }
  std::string error_of(const std::string& text) {
    try {
      read_ncu_csv(file(text));
    } catch (const core::DataError& error) {
      return error.what();
    }
    return "no error";
  }
  core::ScratchFolder scratch_;
};

const char* kWide =
    "==PROF== Connected to process 12\n"
    R"csv("ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active","launch__occupancy_limit_registers","launch__occupancy_limit_warps","lts__t_sector_hit_rate.pct"
"","","usecond","Mbyte","%","%","%","block","block","%"
"0","void foo<float>(int, float)","10","1,000","20","80","15","2","8","n/a"
"1","void foo<float>(int, float)","30","3,000","40","60","17","2","8","n/a"
)csv";

TEST_F(NcuCsvTest, wide_rows_are_launches_and_units_count) {
  const auto launches = read_ncu_csv(file(kWide));
  ASSERT_EQ(launches.size(), 2u);
  const NcuCounters foo = counters_by_function(launches).at("foo");

  EXPECT_EQ(foo.launches, 2);
  EXPECT_NEAR(*foo.duration_s, 20e-6, 1e-12);
  EXPECT_DOUBLE_EQ(*foo.dram_bytes, 2e9);
  EXPECT_EQ(foo.occupancy_limiter, "registers");
  EXPECT_FALSE(foo.l2_hit_percent);
}

TEST_F(NcuCsvTest, counters_replace_estimates) {
  const auto counters = counters_by_function(read_ncu_csv(file(kWide)));
  const auto point = place_operation(operation("void foo<float>(int, float)", 100, 10, 8e11, 1e10),
                                     machine(), counters);

  EXPECT_EQ(point.bound, "memory");
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.7);
  EXPECT_THAT(point.cause, HasSubstr("occupancy 16 %, limited by registers"));
}

TEST_F(NcuCsvTest, rows_a_metric_are_joined_by_id) {
  const auto launches = read_ncu_csv(file(
      R"csv("ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","foo(int)","x","gpu__time_duration.sum","nsecond","5,000"
"0","foo(int)","x","dram__bytes.sum","byte","12"
"1","foo(int)","x","gpu__time_duration.sum","nsecond","7000"
)csv"));

  ASSERT_EQ(launches.size(), 2u);
  EXPECT_NEAR(launches[0].metrics.at("gpu__time_duration.sum"), 5e-6, 1e-15);
  EXPECT_DOUBLE_EQ(launches[0].metrics.at("dram__bytes.sum"), 12);
}

TEST_F(NcuCsvTest, what_is_no_csv_of_ncu_is_refused_with_advice) {
  EXPECT_THAT(error_of("a,b\n1,2\n"), HasSubstr("--page raw"));
  EXPECT_THAT(error_of("==ERROR== ERR_NVGPUCTRPERM - no permission\n"),
              HasSubstr("run ncu as root"));
  EXPECT_THAT(error_of("\"ID\",\"Kernel Name\",\"dram__bytes.sum\"\n"),
              HasSubstr("launches after the header"));
  EXPECT_THROW(read_ncu_csv(scratch_ / "not_there.csv"), core::DataError);
}

}  // namespace
}  // namespace sidestream::advice
