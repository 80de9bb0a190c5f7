// Facts of a step on a device, and what the advice said.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "profiling/advice/advice.hpp"

namespace sidestream::advice {

inline Facts step_of(double window_ms) {
  Facts facts{.world_size = 2,
              .traces = {.every_rank = true,
                         .matched_collectives = true,
                         .operators = true,
                         .runtime_calls = true,
                         .input_ranges = true,
                         .occupancies = true},
              .on_device = true};
  facts.step = StepFacts{.steps = 4, .window_ns = window_ms * 1e6};
  return facts;
}

// The others wait for it beyond chance.
inline statistics::Straggler late_rank(int rank, std::int64_t cost_ns, const std::string& phase) {
  return {{.rank = rank,
           .cost_ns_per_step = cost_ns,
           .steps = 4,
           .steps_last = 4,
           .cost_low_ns = cost_ns / 2,
           .cost_high_ns = cost_ns * 2},
          phase};
}

inline bool speaks(const Advice& advice, const std::string& rule) {
  for (const Finding& one : advice.findings)
    if (one.rule->id == rule) return true;
  return false;
}

inline bool passes(const Advice& advice, const std::string& rule) {
  const auto& all = advice.nothing_found;
  return std::find(all.begin(), all.end(), rule) != all.end();
}

// 0: it has found nothing.
inline double bound_of(const Advice& advice, const std::string& rule) {
  for (const Finding& one : advice.findings)
    if (one.rule->id == rule) return one.what.bound.value();
  return 0;
}

inline std::string needs_of(const Advice& advice, const std::string& rule) {
  for (const auto& [id, needs] : advice.not_measured)
    if (id == rule) return needs;
  return "";
}

}  // namespace sidestream::advice
