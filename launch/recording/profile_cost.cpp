#include "launch/recording/profile_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sidestream::launch {
namespace {

constexpr std::size_t kMostSteps = 4096;  // of each kind: a median needs no more

std::optional<double> median_ms(std::vector<std::int64_t> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle) * 1e-6;
}

std::string or_null(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "null";
}

}  // namespace

void ProfileCost::add(std::int64_t step_ns, bool profiled) {
  if (std::exchange(first_, false)) return;
  std::vector<std::int64_t>& into = profiled ? profiled_ns_ : plain_ns_;
  if (into.size() < kMostSteps) into.push_back(step_ns);
}

std::optional<double> ProfileCost::share() const {
  const auto plain = median_ms(plain_ns_), profiled = median_ms(profiled_ns_);
  if (!plain || !profiled || *plain <= 0) return std::nullopt;
  return (*profiled - *plain) / *plain;
}

std::string ProfileCost::json() const {
  return fmt::format(
      R"({{"plain_steps":{},"plain_step_ms_p50":{},"profiled_steps":{},"profiled_step_ms_p50":{}}})",
      plain_ns_.size(), or_null(median_ms(plain_ns_)), profiled_ns_.size(),
      or_null(median_ms(profiled_ns_)));
}

}  // namespace sidestream::launch
