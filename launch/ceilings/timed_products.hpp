// Matrix products in a row that last about as long as something else: computation for a collective
// to hide behind.
#pragma once

#include <cstdint>
#include <functional>

#include <torch/types.h>

#include "comm/work.hpp"
#include "launch/ceilings/best_rate.hpp"

namespace sidestream::launch {

class TimedProducts {
 public:
  // Of square matrices, on the calling thread's current stream of `device`.
  TimedProducts(const torch::Device& device, torch::ScalarType dtype, std::int64_t extent,
                int count);

  // On a GPU without waiting for them.
  void queue();
  // Blocks until those that were queued are done; collectives on other streams go on.
  void finish();
  // Seconds from the first to the end of the last.
  double run();

  // Null on the processor.
  comm::Stream stream() const;

  // As many of as large matrices as last about `seconds`. `slowest`: of this time over all ranks,
  // asked for the same number of times on each.
  static TimedProducts lasting(double seconds, const torch::Device& device, torch::ScalarType dtype,
                               const std::function<double(double)>& slowest);

 private:
  torch::Device device_;
  ProductTensors tensors_;
  int count_;
};

}  // namespace sidestream::launch
