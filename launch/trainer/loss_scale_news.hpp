// What the log says of a dynamic loss scale: a line for steps whose update was left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/optim/gradient_scaler.hpp"

namespace sidestream::launch {

class LossScaleNews {
 public:
  // What was left out before is known.
  explicit LossScaleNews(const optim::LossScaleState& start) : left_out_(count_of(start)) {}

  // Before each step; the first that is taken here need not be step 1.
  void begin(std::int64_t step) {
    if (!first_) first_ = step;
  }

  // "" where nothing has been left out since the last call. On a GPU nobody looks in every step:
  // then the line is of several.
  std::string of(std::int64_t step, const optim::LossScaleState& now);

 private:
  static std::int64_t count_of(const optim::LossScaleState& state) {
    return static_cast<std::int64_t>(state.left_out);
  }

  std::int64_t left_out_;
  std::optional<std::int64_t> first_ = {};  // of the steps that the next call speaks of
};

}  // namespace sidestream::launch
