// The phase that a range of a trace is.
#pragma once

#include <algorithm>
#include <string_view>

#include "profiling/ranges/phases.hpp"

namespace sidestream::ranges {

// Null: no phase is called so.
constexpr const PhaseInfo* phase_named(std::string_view name) {
  const auto found = std::find_if(kPhases.begin(), kPhases.end(),
                                  [&](const PhaseInfo& phase) { return name == phase.name; });
  return found == kPhases.end() ? nullptr : &*found;
}

constexpr bool is_collective_name(std::string_view name) {
  const PhaseInfo* const phase = phase_named(name);
  return phase != nullptr && is_collective(static_cast<Phase>(phase - kPhases.data()));
}

}  // namespace sidestream::ranges
