#include "profiling/advice/matrix_kernels.hpp"

#include <gtest/gtest.h>

namespace sidestream::advice {
namespace {

TEST(MatrixKernelTest, names_of_libraries) {
  for (const char* name :
       {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "ampere_sgemm_128x64_nn",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(params)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>(Params)",
        "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32"})
    EXPECT_TRUE(is_matrix_kernel(name)) << name;
  for (const char* name : {"void fbgemm_gpu::lookup_kernel<float>(fbgemm_gpu::FixedDivisor, int)",
                           "void at::native::convert_kernel<float>(int)", "softmax_forward"})
    EXPECT_FALSE(is_matrix_kernel(name)) << name;
}

}  // namespace
}  // namespace sidestream::advice
