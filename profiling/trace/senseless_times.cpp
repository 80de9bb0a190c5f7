#include "profiling/trace/senseless_times.hpp"

#include "core/base/printable.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::trace {

// Rows of a recording that ended meanwhile have no end.
bool SenselessTimes::counts(const TimeFault& fault, std::string_view name) const {
  if (!fault.is_absence()) return true;
  return unit_ == Unit::kEvent && name.starts_with(ranges::kStepPrefix);
}

void SenselessTimes::add(const TimeFault& fault, std::string_view place, std::string_view name) {
  if (!counts(fault, name) || count_++ > 0) return;
  constexpr std::size_t kShown = 60;
  first_ = (unit_ == Unit::kRow ? "in " : "") + std::string(place) + ", '" +
           core::printable(name.substr(0, kShown)) + "': " + fault.text();
}

std::vector<std::string> SenselessTimes::warnings() const {
  if (count_ == 0) return {};
  const std::string one = unit_ == Unit::kEvent ? " event" : " row";
  return {std::to_string(count_) + one + (count_ == 1 ? " is" : "s are") +
          " left out for times that cannot be; the first is " + first_};
}

}  // namespace sidestream::trace
