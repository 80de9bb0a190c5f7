// Random arrays for the tests of the optimizers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "core/base/dtype.hpp"

namespace sidestream::optim {

inline std::vector<float> normal_floats(std::size_t n, std::uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

inline std::vector<core::BFloat16> rounded(std::span<const float> values) {
  std::vector<core::BFloat16> result;
  for (const float value : values) result.emplace_back(value);
  return result;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// |a - b| / |b| in the Euclidean norm.
inline double relative_distance(std::span<const float> a, std::span<const double> b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

}  // namespace sidestream::optim
