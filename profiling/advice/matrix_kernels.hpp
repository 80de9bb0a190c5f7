// Kernels that multiply matrices, by the names that libraries give them: one list for all that ask.
#pragma once

#include <array>
#include <string_view>

namespace sidestream::advice {

// cuDNN's, and cutlass's.
inline constexpr std::array<std::string_view, 8> kConvolutionWords = {
    "convolve", "conv2d", "conv_dep", "cutlass::conv", "fprop", "dgrad", "wgrad", "winograd"};

// Of the name of a function, without namespaces and arguments ("fbgemm_gpu::" is none): cuBLAS
// (gemm, gemv, xmma, nvjet from Hopper on), cutlass, fused attention.
inline constexpr std::array<std::string_view, 9> kProductWords = {
    "gemm", "Gemm", "GEMM", "gemv", "cutlass", "xmma", "nvjet", "fmha", "flash"};

// Products and convolutions.
bool is_matrix_kernel(std::string_view kernel);

// Of them, those with a word of a convolution anywhere: cutlass has it among the arguments.
bool is_convolution_kernel(std::string_view kernel);

}  // namespace sidestream::advice
