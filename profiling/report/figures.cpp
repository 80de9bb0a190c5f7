#include "profiling/report/figures.hpp"

#include <fmt/format.h>

#include "core/base/printable.hpp"

namespace sidestream::report {

std::optional<double> Figures::take(const nlohmann::json& object, const char* key,
                                    const Bounds& bounds) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  constexpr double kRounding = 1 + 1e-9;  // shares are sums
  if (found->is_number()) {
    const auto value = found->get<double>();
    if (value >= bounds.least && value <= bounds.most * kRounding) return value;
  }
  if (told_.insert(key).second) {
    constexpr std::size_t kMostShown = 60;
    const std::string where = place_.empty() ? "" : place_ + ": ";
    faults_->push_back(
        fmt::format("{}: {}\"{}\": expected a number from {:g} to {:g}, found {}: "
                    "such figures are left out",
                    file_, where, key, bounds.least, bounds.most,
                    core::printable(found->dump().substr(0, kMostShown))));
  }
  return std::nullopt;
}

}  // namespace sidestream::report
