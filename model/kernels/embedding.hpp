// Gathering rows of an embedding, and adding gradients back to them. Element types: float and
// core::BFloat16.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace sidestream::model::kernels {

// out = token + position, width elements; position may be null.
void add_embeddings(const float* token, const float* position, std::int64_t width, float* out);
void add_embeddings(const core::BFloat16* token, const core::BFloat16* position, std::int64_t width,
                    core::BFloat16* out);

// target += sum over i of grads[rows[i] * width ..]: fp32 sums in the order of `rows`, rounded
// once. `sums` is scratch of width elements.
template <typename T>
struct RowGradients {
  const T* grads = nullptr;
  const std::int64_t* rows = nullptr;
  std::int64_t count = 0, width = 0;
};
void accumulate_rows(const RowGradients<float>& gradients, float* sums, float* target);
void accumulate_rows(const RowGradients<core::BFloat16>& gradients, float* sums,
                     core::BFloat16* target);

}  // namespace sidestream::model::kernels
