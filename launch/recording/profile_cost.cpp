#include "launch/recording/profile_cost.hpp"

#include <utility>

#include "profiling/statistics/median.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kMostSteps = 4096;  // of each kind: a median needs no more

std::optional<double> median_ms(std::vector<std::int64_t> values) {
  if (values.empty()) return std::nullopt;
  return static_cast<double>(statistics::upper_median(std::move(values))) * 1e-6;
}

}  // namespace

void ProfileCost::add(std::int64_t step_ns, bool profiled) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(first_, false)) return;
  std::vector<std::int64_t>& into = profiled ? profiled_ns_ : plain_ns_;
  if (into.size() < kMostSteps) into.push_back(step_ns);
}

std::optional<double> ProfileCost::plain_step_ms() const {
  const std::lock_guard lock(mutex_);
  return median_ms(plain_ns_);
}

std::optional<double> ProfileCost::share() const {
  const std::lock_guard lock(mutex_);
  const auto plain = median_ms(plain_ns_), profiled = median_ms(profiled_ns_);
  if (!plain || !profiled || *plain <= 0) return std::nullopt;
  return (*profiled - *plain) / *plain;
}

}  // namespace sidestream::launch
