// What took the most time: kernels and copies of device ranks; of host ranks operators and phases
// that compute, each its own time without what it calls, and collectives. A fused optimizer is no
// operator, and a recording without the profiler has phases only. Sums over all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

// Work of the calls whose work is known, and the time that these calls took.
struct KnownWork {
  double amount = 0;
  std::int64_t time_ns = 0;

  void add(const std::optional<double>& more, std::int64_t duration_ns) {
    if (!more) return;
    amount += *more;
    time_ns += duration_ns;
  }
  std::optional<double> total() const { return amount > 0 ? std::optional(amount) : std::nullopt; }
  std::optional<double> per_s() const {
    return amount > 0 && time_ns > 0 ? std::optional(amount * 1e9 / static_cast<double>(time_ns))
                                     : std::nullopt;
  }
};

// The part of an operation's FLOPs that came with inputs of these shapes and types.
struct ShapedWork {
  std::string operator_name;  // that did it: of a kernel, the one that launched it
  std::string shapes;         // "Input Dims" as the profiler wrote them
  std::string types;          // "Input type"
  double flops = 0;
};

struct Operation {
  std::string name;
  trace::Kind kind = trace::Kind::kKernel;
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  double share = 0;  // of the time of all operations
  KnownWork flops;   // from the shapes of the operators
  KnownWork bytes;   // of copies what was copied, of collectives what each rank put in; else from
                     // the shapes
  bool bytes_at_least = false;          // of some calls the inputs only (operator_bytes.hpp)
  std::vector<ShapedWork> shaped = {};  // the most FLOPs first
  std::optional<double> occupancy_percent = {};  // the profiler's estimate, weighted by duration
};

// Where a run is recorded and some of its steps are profiled too, operations are those of the
// profiled steps: in the others a phase would have the time of all its operators.
struct OperationSteps {
  bool profiled_only = false;
  std::vector<IntervalSet> windows = {};  // by file
  std::int64_t steps = 0;                 // of all ranks, those that they count
  std::int64_t length_ns = 0;             // of all these
};
OperationSteps operation_steps(const std::vector<RankView>& ranks);

// By total time, the longest first.
std::vector<Operation> operations(const std::vector<RankView>& ranks, const OperationSteps& steps);

}  // namespace sidestream::analysis
