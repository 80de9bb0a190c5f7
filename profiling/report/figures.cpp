#include "profiling/report/figures.hpp"

#include <fmt/format.h>

namespace sidestream::report {

std::optional<double> Figures::take(const nlohmann::json& object, const char* key,
                                    const core::NumberBounds& bounds) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (found->is_number() && bounds.hold(found->get<double>())) return found->get<double>();
  ++refused_;
  if (told_.insert(key).second) {
    const std::string where = line_ ? fmt::format("line {}: ", *line_) : "";
    faults_->push_back(fmt::format(
        "{}: {}\"{}\": expected a number from {:g} to {:g}, found {}: such figures are left out",
        file_, where, key, bounds.least, bounds.most, core::value_words(*found)));
  }
  return std::nullopt;
}

}  // namespace sidestream::report
