#include "profiling/statistics/outliers.hpp"

#include <vector>

#include "profiling/statistics/median.hpp"

namespace sidestream::statistics {
namespace {

constexpr std::int64_t kOutlierMedians = 5;
constexpr std::size_t kLeastSteps = 10;
constexpr std::size_t kOneOf = 10;

}  // namespace

bool is_outlier(std::int64_t length, std::int64_t median) {
  return length / kOutlierMedians >= median;
}

std::set<std::int64_t> outliers_among(const std::map<std::int64_t, std::int64_t>& lengths) {
  std::vector<std::int64_t> all;
  for (const auto& [step, length] : lengths) all.push_back(length);
  if (all.size() < kLeastSteps) return {};
  const std::int64_t median = upper_median(all);
  std::set<std::int64_t> outliers;
  for (const auto& [step, length] : lengths) {
    if (is_outlier(length, median)) outliers.insert(step);
  }
  return outliers.size() * kOneOf <= all.size() ? outliers : std::set<std::int64_t>();
}

}  // namespace sidestream::statistics
