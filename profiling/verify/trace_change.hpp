// What the traces of two runs say about the change of a step: by part, by operation, by collective.
#pragma once

#include <cstdint>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/verify/change.hpp"

namespace sidestream::verify {

struct TraceChange {
  std::int64_t base_steps = 0;  // untagged steps over all ranks
  std::int64_t fresh_steps = 0;
  std::size_t base_windows = 0;  // recordings that they are from
  std::size_t fresh_windows = 0;
  std::vector<Part> parts = {};        // compute, exposed communication, ...
  std::vector<Part> phases = {};       // by phase_change.hpp; empty without such ranges
  std::vector<Part> operations = {};   // the largest changes, the other ones, and no operation
  std::vector<Part> collectives = {};  // exposed time by bucket, and the rest
};

// Means of one step of one rank, in milliseconds. Parts, phases and operations add up to the step,
// collectives to the exposed communication. The lists have the `rows` largest changes. Nothing is
// filled in for sides without steps.
TraceChange compare_traces(const analysis::Analysis& base, const analysis::Analysis& fresh,
                           std::size_t rows = 15);

}  // namespace sidestream::verify
