#include "profiling/trace/time_fault.hpp"

#include "core/base/printable.hpp"

namespace sidestream::trace {

std::string TimeFault::text() const {
  if (is_absence()) return reason;
  constexpr std::size_t kShown = 40;
  const bool cut = found.size() > kShown;
  return "expected " + std::string(expected) + ", found '" +
         core::printable(found.substr(0, kShown)) + (cut ? "...'" : "'");
}

}  // namespace sidestream::trace
