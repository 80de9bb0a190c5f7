// Tells when a value is far from those before it: loss and gradient norm of a training.
//
// z = (x - mean) / standard deviation of the last `window` values that were kept (the population's,
// in double, added oldest first, so that a resumed run gives the same bits). As in llm.c; unlike
// there a value is not part of its own mean.
//
// Until the window is full, from 32 values on, deviations are counted for less, because mean and
// deviation of few values are uncertain themselves. For n values of one normal distribution,
// t = (x - mean) / (s sqrt(1 + 1/n)) of the next one follows Student's distribution with v = n - 1
// degrees of freedom (s: the sample's deviation); z is what is as improbable in a normal
// distribution, by Wallace's approximation (1959):
//   z = (8v + 1) / (8v + 3) sqrt(v ln(1 + t^2 / v))
// A threshold of 8 stands for 15.1 s after 32 values, 10.7 s after 64, 9.2 s after 127.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace sidestream::optim {

class SpikeDetector {
 public:
  static constexpr std::size_t kWindow = 128;
  static constexpr std::size_t kFewest = 32;

  // Nothing while there are too few values, or when all of them are the same.
  std::optional<double> zscore(double value) const;

  bool is_full() const noexcept { return values_.size() == kWindow; }

  // Takes a value in; one that was judged a spike should stay outside.
  void keep(double value);

  // Oldest first: for a checkpoint, and back.
  const std::vector<double>& values() const noexcept { return values_; }
  void restore(std::vector<double> values);

 private:
  std::vector<double> values_;
};

}  // namespace sidestream::optim
