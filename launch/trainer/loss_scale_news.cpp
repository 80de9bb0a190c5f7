#include "launch/trainer/loss_scale_news.hpp"

#include <fmt/format.h>

#include <utility>

namespace sidestream::launch {

std::string LossScaleNews::of(std::int64_t step, const optim::LossScaleState& now) {
  const std::int64_t before = std::exchange(left_out_, count_of(now));
  const std::optional<std::int64_t> first = std::exchange(first_, step + 1);
  const std::int64_t more = left_out_ - before;
  if (more <= 0) return {};
  const bool one_step = first == step;
  if (more == 1) {
    return fmt::format(
        "{} {}: a gradient was not finite in fp16: its update is left out, the loss scale is {:g} "
        "now",
        one_step ? "step" : "by step", step, now.scale);
  }
  return fmt::format(
      "by step {}: gradients were not finite in fp16: {} updates are left out, the loss scale is "
      "{:g} now",
      step, more, now.scale);
}

}  // namespace sidestream::launch
