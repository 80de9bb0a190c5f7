// Tells when a value is far from those before it: loss and gradient norm of a training.
//
// z = (x - mean) / standard deviation of the last `window` values that were kept (the population's,
// in double, added oldest first, so that a resumed run gives the same bits). Nothing is told until
// the window is full, as in llm.c; unlike there a value is not part of its own mean.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace sidestream::optim {

class SpikeDetector {
 public:
  static constexpr std::size_t kWindow = 128;

  // Nothing while there are too few values, or when all of them are the same.
  std::optional<double> zscore(double value) const;

  // Takes a value in; one that was judged a spike should stay outside.
  void keep(double value);

  // Oldest first: for a checkpoint, and back.
  const std::vector<double>& values() const noexcept { return values_; }
  void restore(std::vector<double> values);

 private:
  std::vector<double> values_;
};

}  // namespace sidestream::optim
