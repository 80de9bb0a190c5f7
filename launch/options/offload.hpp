// What --offload puts into the memory of a GPU's host.
#pragma once

#include <string>

#include "launch/options/train_options.hpp"

namespace sidestream::launch {

struct Offload {
  bool residuals = false;
  bool optimizer = false;

  // "none", or names with commas between them. Throws ConfigError.
  static Offload from_text(const std::string& text);
  std::string text() const;
  bool any() const noexcept { return residuals || optimizer; }
};

Offload offload_of(const TrainOptions& options);

// Throws ConfigError where something is to be offloaded: there is no other memory than the host's.
void refuse_offload_on_processor(const TrainOptions& options);

}  // namespace sidestream::launch
