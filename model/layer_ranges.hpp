// Ranges around the forward of each layer, named by parameter path, when they are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::model {

class LayerPaths {
 public:
  // transformer.h.0, transformer.h.0.attn, transformer.h.0.mlp, ... for prefix "transformer.h.".
  LayerPaths(const std::string& prefix, const ModelConfig& config) {
    if (config.layer_ranges == LayerRanges::kOff) return;
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string path = prefix + std::to_string(layer);
      layers_.push_back({ranges::LayerName(path), ranges::LayerName(path + ".attn"),
                         ranges::LayerName(path + ".mlp")});
    }
  }

  struct Names {
    ranges::LayerName block, attention, mlp;
  };
  // Null when ranges are off.
  const Names* at(std::size_t layer) const { return layers_.empty() ? nullptr : &layers_[layer]; }

 private:
  std::vector<Names> layers_;
};

// A scoped range that may be none.
class LayerRange {
 public:
  LayerRange(const LayerPaths::Names* names, ranges::LayerName LayerPaths::Names::*which) {
    if (names != nullptr) range_.emplace(names->*which);
  }

 private:
  std::optional<ranges::ScopedRange> range_;
};

}  // namespace sidestream::model
