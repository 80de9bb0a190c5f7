// Kernels that multiply matrices, by the names that libraries give them: one list for all that ask.
#pragma once

#include <array>
#include <string_view>

namespace sidestream::advice {

// Of the name of a function, without namespaces and arguments ("fbgemm_gpu::" is none): cuBLAS
// (gemm, gemv, xmma, nvjet from Hopper on), cutlass, cuDNN's convolutions, fused attention.
inline constexpr std::array<std::string_view, 16> kMatrixKernelWords = {
    "gemm",   "Gemm",     "GEMM",  "gemv",  "cutlass", "xmma",     "nvjet", "convolve",
    "conv2d", "conv_dep", "fprop", "dgrad", "wgrad",   "winograd", "fmha",  "flash"};

bool is_matrix_kernel(std::string_view kernel);

}  // namespace sidestream::advice
