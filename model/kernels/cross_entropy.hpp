// Softmax cross-entropy of one row of logits, with the gradient written over the logits. Element
// types: float and core::BFloat16.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace sidestream::model::kernels {

struct CrossEntropyRow {
  std::int64_t vocab_size = 0;  // columns of the softmax
  std::int64_t columns = 0;     // those from vocab_size on get gradient 0
  std::int64_t target = 0;      // below vocab_size
  float gradient_scale = 0;     // 0: no gradient is wanted, logits stay as they are
};

// Returns -log softmax(logits)[target].
float cross_entropy(const CrossEntropyRow& row, float* logits);
float cross_entropy(const CrossEntropyRow& row, core::BFloat16* logits);

}  // namespace sidestream::model::kernels
