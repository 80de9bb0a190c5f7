// How well the devices were used, on traces by hand.
#include "profiling/analysis/utilisation.hpp"

#include <gtest/gtest.h>

#include "profiling/analysis/analysis.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

class UtilisationTest : public ::testing::Test {
 protected:
  Analysis look(const std::string& events) {
    test::write_text(scratch_ / "rank-0.json",
                     R"({"deviceProperties":[{"id":0,"name":"G","numSms":100}],"traceEvents":[)" +
                         events + "]}");
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
    return analyse(set_, 1);
  }

  static std::string kernel(const std::string& name, int start, int duration, int blocks,
                            int occupancy) {
    return "," +
           complete_event("kernel", name, std::to_string(start), std::to_string(duration),
                          R"("device":0,"stream":)" + std::to_string(start) + R"(,"grid":[)" +
                              std::to_string(blocks) + R"(,1,1],"est. achieved occupancy %":)" +
                              std::to_string(occupancy));
  }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
};

TEST_F(UtilisationTest, kernels_are_cut_at_steps_and_do_not_add_up_where_they_overlap) {
  const Analysis all = look(complete_event("user_annotation", "ProfilerStep#3", "0", "100") +
                            kernel("a", 10, 50, 50, 50) + kernel("b_hmma", 40, 40, 100, 250) +
                            kernel("c", 90, 60, 100, 20) + kernel("d_hmma", 200, 900, 100, 90));

  EXPECT_DOUBLE_EQ(all.utilisation.gpu_utilisation.value(), 0.8);
  // Half of the SMs for 30 us, all of them for 40 us and for the 10 us of c inside the step.
  EXPECT_DOUBLE_EQ(all.utilisation.sm_efficiency.value(), 0.65);
  // Above 100 is unknown: 50 us of 50 %, 10 us of 20 %.
  EXPECT_NEAR(all.utilisation.occupancy.value(), 0.45, 1e-9);
  EXPECT_DOUBLE_EQ(all.utilisation.tensor_core_share.value(), 0.4);
}

TEST_F(UtilisationTest, the_first_step_of_a_run_is_in_no_mean) {
  const Analysis all = look(complete_event("user_annotation", "ProfilerStep#0", "0", "900") + "," +
                            complete_event("user_annotation", "ProfilerStep#1", "900", "100") +
                            kernel("a", 10, 20, 100, 50) + kernel("b", 910, 80, 100, 50));

  EXPECT_DOUBLE_EQ(all.utilisation.gpu_utilisation.value(), 0.8);
  EXPECT_DOUBLE_EQ(all.utilisation.sm_efficiency.value(), 0.8);
}

TEST_F(UtilisationTest, counters_say_more_of_tensor_cores_than_names_do) {
  const Analysis all = look(complete_event("user_annotation", "ProfilerStep#3", "0", "100") +
                            kernel("plain", 0, 30, 100, 0) + kernel("b_hmma", 40, 10, 100, 0));
  EXPECT_DOUBLE_EQ(all.utilisation.tensor_core_share.value(), 0.25);
  EXPECT_EQ(all.utilisation.tensor_core_source, "kernel names");
  EXPECT_EQ(all.utilisation.occupancy, std::nullopt);  // 0 is unknown

  const auto of_plain = [](std::string_view name) {
    return name == "plain" ? std::optional(true) : std::nullopt;
  };
  const Utilisation some = find_utilisation(all.ranks, of_plain);
  EXPECT_DOUBLE_EQ(some.tensor_core_share.value(), 1);
  EXPECT_EQ(some.tensor_core_source, "counters for 75 % of the time, else kernel names");

  const auto of_none = [](std::string_view) { return std::optional(false); };
  EXPECT_DOUBLE_EQ(find_utilisation(all.ranks, of_none).tensor_core_share.value(), 0);
  EXPECT_EQ(find_utilisation(all.ranks, of_none).tensor_core_source, "counters");
}

// As cuBLAS, cuDNN, CUTLASS, FlashAttention, Triton and rocBLAS call them.
TEST(TensorCoreNamesTest, kernels_of_libraries_are_told_by_their_names) {
  for (const char* name :
       {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_stage3_warpsize2x2x1_"
        "tensor16x8x8",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn>",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, "
        "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized"
        "<4>>>>",
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_7_64x64x64_4x1x1",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_f16_knob_31_64x128x128_1x1x1",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>",
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT",
        "Cijk_Ailk_Bjlk_BBS_BH_MT128x128x32_MI32x32x8x1_SN"})
    EXPECT_TRUE(uses_tensor_cores(name)) << name;
  for (const char* name :
       {"ampere_sgemm_128x64_tn", "volta_sgemm_128x64_nn",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_"
        "kernel",
        "sm90_gemm_f32_simt_128x128x8",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x5_nn>",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"})
    EXPECT_FALSE(uses_tensor_cores(name)) << name;
}

TEST_F(UtilisationTest, launches_of_work_that_is_not_in_the_trace_have_no_rate) {
  const std::string host =
      complete_event("user_annotation", "ProfilerStep#3", "0", "100") + "," +
      complete_event("cpu_op", "aten::mm", "2", "6",
                     R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])");
  const std::string launch =
      "," + complete_event("cuda_runtime", "cudaLaunchKernel", "3", "1", R"("correlation": 1)");

  EXPECT_TRUE(look(host).operations.at(0).flops.per_s().has_value());
  EXPECT_FALSE(look(host + launch).operations.at(0).flops.per_s().has_value());
}

TEST_F(UtilisationTest, collectives_among_the_operations_have_their_bytes) {
  const std::string kernel = complete_event(
      "kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "10", "4",
      R"("device":0,"stream":20,"Collective name":"allreduce","In msg nelems":1000,"dtype":"BFloat16")");
  const Analysis all =
      look(complete_event("user_annotation", "ProfilerStep#3", "0", "100") + "," + kernel);

  EXPECT_DOUBLE_EQ(all.operations.at(0).bytes.total().value(), 2000);
  EXPECT_DOUBLE_EQ(all.operations.at(0).bytes.per_s().value(), 2000 / 4e-6);
}

}  // namespace
}  // namespace sidestream::analysis
