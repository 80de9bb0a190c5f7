// SIDESTREAM_KERNEL before a function over the threads of a block (block.hpp): part of a kernel
// when nvcc compiles it, an ordinary function for tests on the processor. (Formulas for single
// numbers are SIDESTREAM_INLINE, as everywhere.)
#pragma once

#if defined(__CUDACC__)
#define SIDESTREAM_KERNEL __device__ __forceinline__
#else
#define SIDESTREAM_KERNEL inline
#endif
