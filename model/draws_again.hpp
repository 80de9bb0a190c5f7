// Whether backward makes numbers of dropout again, from a state of the generator that was kept. No
// LibTorch in this header.
#pragma once

#include "model/config.hpp"

namespace sidestream::model {

// Levels below that of attention make nothing again that draws.
inline bool draws_again(const ModelConfig& config) noexcept {
  return config.dropout > 0 && config.recompute >= Recompute::kAttention;
}

}  // namespace sidestream::model
