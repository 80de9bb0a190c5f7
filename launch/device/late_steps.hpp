// The numbers of steps on their way to the host: those of one step are read while the device works
// on the next one, which may have been asked for already.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/optim/elements.hpp"
#include "launch/device/late_values.hpp"

namespace sidestream::launch {

struct LateStep {
  std::int64_t step = 0;
  double loss_sum = 0;  // over the micro-steps of this rank
  optim::StepScalars scalars = {};
};

class LateSteps {
 public:
  LateSteps(const std::shared_ptr<comm::cuda::Driver>& driver,
            const std::function<comm::Stream()>& current_stream)
      : values_{LateValues(driver, current_stream), LateValues(driver, current_stream)} {}

  // Queues copies of both, as they are at this point of the current stream; does not block. At most
  // two steps are on their way.
  void ask(std::int64_t step, const torch::Tensor& loss_sum, const torch::Tensor& scalars);

  bool is_asked() const noexcept { return asked_ > read_; }

  // Of the oldest that was asked for; waits until they are here.
  LateStep read();

 private:
  static constexpr std::size_t kMost = 2;

  std::array<LateValues, kMost> values_;
  std::array<std::int64_t, kMost> steps_{};
  std::size_t asked_ = 0;
  std::size_t read_ = 0;
};

}  // namespace sidestream::launch
