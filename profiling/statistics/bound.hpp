// What bounds a run, judged over its steps, and how sure that is.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "profiling/statistics/mean_interval.hpp"

namespace sidestream::statistics {

// The parts of a step, or of many together, in nanoseconds.
struct StepParts {
  double window_ns = 0;
  double io_ns = 0;    // waiting for data
  double comm_ns = 0;  // collectives that nothing hides
  double compute_ns = 0;

  void add(const StepParts& other) noexcept;
};

// Words of what is computed on.
inline constexpr const char* kOnGpu = "gpu";
inline constexpr const char* kOnProcessor = "compute";

// Shares of an average step of all ranks, together 1. Words: io, comm, kOnGpu or kOnProcessor, and
// cpu for all else that the host does.
struct Bound {
  std::string word = {};       // of the largest share
  std::string runner_up = {};  // of the second
  double io = 0, cpu = 0, compute = 0, comm = 0;
  std::string compute_word = kOnProcessor;
  // By how much of a step the largest leads the second in all steps together, with its 95 %
  // interval over the steps. Nothing where there are too few of them.
  std::optional<Interval> lead = {};

  // Not only on average, but beyond what steps scatter.
  bool is_sure() const noexcept { return lead && lead->low > 0; }
};

// Nothing where the sum has no length. `steps`: those to judge the lead by.
std::optional<Bound> find_bound(const StepParts& sum, std::span<const StepParts> steps,
                                const char* compute_word);

// "computing (it leads communication by 3.0 to 5.0 % of a step, 95 %)", or "computing or by
// communication: not sure (-1.1 to 2.5 % of a step, 95 %)", or "computing: not sure (too few steps
// to tell how far it leads communication)".
std::string text_of(const Bound& bound);

}  // namespace sidestream::statistics
