#include "launch/doctor/finding.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace sidestream::launch::doctor {

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  throw core::Error("a level of a finding that is none");
}

Level worst_of(const std::vector<Finding>& findings) {
  Level worst = Level::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.level);
  return worst;
}

}  // namespace sidestream::launch::doctor
