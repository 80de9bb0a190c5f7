#include "core/optim/spike_detector.hpp"

#include <cmath>
#include <utility>

namespace sidestream::optim {

std::optional<double> SpikeDetector::zscore(double value) const {
  if (values_.size() < kWindow) return std::nullopt;
  double sum = 0;
  for (const double one : values_) sum += one;
  const double mean = sum / static_cast<double>(kWindow);
  double squares = 0;
  for (const double one : values_) squares += (one - mean) * (one - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(kWindow));
  if (deviation == 0) return std::nullopt;
  return (value - mean) / deviation;
}

void SpikeDetector::keep(double value) {
  if (values_.size() == kWindow) values_.erase(values_.begin());
  values_.push_back(value);
}

void SpikeDetector::restore(std::vector<double> values) {
  if (values.size() > kWindow) values.erase(values.begin(), values.end() - kWindow);
  values_ = std::move(values);
}

}  // namespace sidestream::optim
