#include "launch/device/late_steps.hpp"

#include <cstring>

namespace sidestream::launch {
namespace {

// Where the numbers lie on their way to the host.
constexpr std::size_t kLossAt = 0;
constexpr std::size_t kScalarsAt = 1;  // as optim::StepScalars
static_assert(kScalarsAt + optim::kStepScalars <= LateValues::kMost);

}  // namespace

void LateSteps::ask(std::int64_t step, const torch::Tensor& loss_sum,
                    const torch::Tensor& scalars) {
  TORCH_CHECK(asked_ - read_ < kMost, "late steps: one is asked for before another was read");
  LateValues& values = values_[asked_ % kMost];
  steps_[asked_ % kMost] = step;
  values.ask(kLossAt, loss_sum);
  values.ask(kScalarsAt, scalars);
  values.seal();
  ++asked_;
}

LateStep LateSteps::read() {
  TORCH_CHECK(is_asked(), "late steps: nothing was asked for");
  const std::size_t place = read_ % kMost;
  const auto& values = values_[place].read([] {});
  LateStep late{.step = steps_[place], .loss_sum = values[kLossAt]};
  std::memcpy(static_cast<void*>(&late.scalars), values.data() + kScalarsAt, sizeof late.scalars);
  ++read_;
  return late;
}

}  // namespace sidestream::launch
