// SIDESTREAM_VECTORIZED before a function over plain arrays: the compiler makes a clone for AVX-512
// and one for AVX2, and the loader picks the one that the processor has (micro-architecture levels,
// for GCC takes the name of a processor as that processor only, and newer ones get the slow clone).
// The program thus runs on any x86-64 node of a mixed cluster. Inside such a function calls only
// inline what is marked always_inline.
//
// SIDESTREAM_INLINE before a function over single elements: inlined into every clone, and into a
// kernel when nvcc compiles it, so that processor and GPU share one formula.
#pragma once

#if defined(__CUDACC__)
#define SIDESTREAM_VECTORIZED
#define SIDESTREAM_INLINE __host__ __device__ __forceinline__
#else
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SIDESTREAM_VECTORIZED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SIDESTREAM_VECTORIZED
#endif
#define SIDESTREAM_INLINE inline __attribute__((always_inline))
#endif
