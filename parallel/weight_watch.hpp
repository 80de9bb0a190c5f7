// Notices another optimizer than DataParallel's own: weights that somebody has written to between
// the sums of a step and the step after it.
//
// Where ranks share their weights or keep slices of the state, such an optimizer goes wrong unseen:
// it would update the same memory once for every rank, or from gradients that are sums in this
// rank's slices only. What a program writes in place counts in the version of its parameter, which
// updates here leave alone. Optimizers that write through Tensor::data() (torch::optim::SGD) are
// not counted: on the host a few elements of every parameter are compared, too. On a device that
// would cost kernels in every step: who writes in this way is not noticed there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

class WeightWatch {
 public:
  // `parameters` must outlive it.
  explicit WeightWatch(const ParameterSpace& parameters) : parameters_(parameters) {}

  // From here on nobody writes. On the host no weight may still be on its way.
  void begin();
  // Weights are to be written: none of it is held against anybody until begin().
  void forget() noexcept { versions_.clear(); }
  // Throws Error that names the first parameter that was written to since begin().
  void require_unwritten() const;
  // The same where ranks have not met since: others may be ahead, and write to weights that all
  // share. There only what this rank has written counts.
  void require_unwritten_by_own() const;

 private:
  void require_same(const std::vector<std::byte>& samples) const;
  std::vector<std::byte> samples_of_all() const;
  bool is_written(std::size_t parameter, const std::vector<std::byte>& samples) const;

  const ParameterSpace& parameters_;
  std::vector<std::uint32_t> versions_;  // empty: nobody is watched
  std::vector<std::byte> samples_;       // empty on a device
};

}  // namespace sidestream::parallel
