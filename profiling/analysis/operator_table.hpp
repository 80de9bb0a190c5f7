// Operators by name, shapes and call stack; and the tree that they form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/call_tree.hpp"
#include "profiling/analysis/step_table.hpp"
#include "profiling/analysis/top_operations.hpp"

namespace sidestream::analysis {

struct CallSums {
  std::int64_t calls = 0;
  std::int64_t host_total_ns = 0;  // with what is inside
  std::int64_t host_self_ns = 0;
  std::int64_t device_total_ns = 0;  // of the kernels and copies launched by it and inside it
  std::int64_t device_self_ns = 0;

  void add(const trace::RankTimeline& timeline, const Call& call);
};

struct OperatorRow {
  std::string name;
  std::string shapes;  // "[[64,768],[768]]"; empty: not recorded
  std::string stack;
  CallSums sums;
  KnownWork flops;  // over time on the device where there is any, else on the host
  KnownWork bytes;
};

// A place in the tree of calls: which operators and ranges lead to it.
struct TreeRow {
  std::vector<std::string> path;  // from the outermost
  CallSums sums;
};

// Longest first: by time on the device, then on the host. Sums over all ranks.
std::vector<OperatorRow> operator_table(const std::vector<RankView>& ranks,
                                        const std::vector<CallTree>& trees);

// Parents before what is inside them, siblings by time, the longest first. Steps are one place
// (ProfilerStep), whatever their number; so are ranges of which more than 256 differ in numbers
// alone ("iteration #").
std::vector<TreeRow> operator_tree(const std::vector<RankView>& ranks,
                                   const std::vector<CallTree>& trees);

}  // namespace sidestream::analysis
