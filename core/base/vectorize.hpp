// SIDESTREAM_VECTORIZED before a function over plain arrays: the compiler makes a clone for AVX-512 and one for AVX2,
// and the loader picks the one that the processor has. The program thus runs on any x86-64 node of a mixed cluster.
// Inside such a function calls only inline what is marked always_inline.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SIDESTREAM_VECTORIZED __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define SIDESTREAM_VECTORIZED
#endif
#define SIDESTREAM_INLINE inline __attribute__((always_inline))
