#include "core/optim/spike_detector.hpp"

#include <cmath>
#include <utility>

namespace sidestream::optim {
namespace {

// Of `count` values before, the next one is so many deviations (of the population) away.
double score_of_few(double deviations, double count) {
  const double freedom = count - 1;
  const double t = deviations * std::sqrt(freedom / count) / std::sqrt(1 + 1 / count);
  const double z =
      (8 * freedom + 1) / (8 * freedom + 3) * std::sqrt(freedom * std::log1p(t * t / freedom));
  return std::copysign(z, deviations);
}

}  // namespace

std::optional<double> SpikeDetector::zscore(double value) const {
  if (values_.size() < kFewest) return std::nullopt;
  const auto count = static_cast<double>(values_.size());
  double sum = 0;
  for (const double one : values_) sum += one;
  const double mean = sum / count;
  double squares = 0;
  for (const double one : values_) squares += (one - mean) * (one - mean);
  const double deviation = std::sqrt(squares / count);
  if (deviation == 0) return std::nullopt;
  const double deviations = (value - mean) / deviation;
  return is_full() ? deviations : score_of_few(deviations, count);
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
