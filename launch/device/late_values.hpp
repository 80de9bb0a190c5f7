// A few numbers on their way from the device to the host: asked for at one point of the stream,
// read when they have come.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include <torch/types.h>

#include "comm/cuda/handles.hpp"

namespace sidestream::launch {

class LateValues {
 public:
  static constexpr std::size_t kMost = 16;

  LateValues(std::shared_ptr<comm::cuda::Driver> driver,
             std::function<comm::Stream()> current_stream);
  ~LateValues();
  LateValues(const LateValues&) = delete;
  LateValues& operator=(const LateValues&) = delete;

  // Queues a copy of `values` (doubles on the device) to places first, first + 1, ... Does not
  // block.
  void ask(std::size_t first, const torch::Tensor& values);
  // Behind the last ask.
  void seal();

  // Waits until everything asked for before seal() is here. `check` is called while it waits and
  // may throw.
  const std::array<double, kMost>& read(const std::function<void()>& check);

 private:
  std::shared_ptr<comm::cuda::Driver> driver_;
  std::function<comm::Stream()> current_stream_;
  comm::cuda::OwnedEvent arrived_;
  double* pinned_;
  std::array<double, kMost> values_{};
};

}  // namespace sidestream::launch
