// Facts of a step on a device, and what the advice said.
#pragma once

#include <string>

#include "profiling/advice/advice.hpp"

namespace sidestream::advice {

inline Facts step_of(double window_ms) {
  Facts facts{.world_size = 2, .on_device = true};
  facts.step = StepFacts{.steps = 4, .window_ns = window_ms * 1e6};
  return facts;
}

inline bool speaks(const Advice& advice, const std::string& rule) {
  for (const Finding& one : advice.findings)
    if (one.rule->id == rule) return true;
  return false;
}

inline std::string needs_of(const Advice& advice, const std::string& rule) {
  for (const auto& [id, needs] : advice.not_measured)
    if (id == rule) return needs;
  return "";
}

}  // namespace sidestream::advice
