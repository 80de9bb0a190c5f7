// Kernels by name and launch configuration: what occupancy and Tensor Core use depend on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/call_tree.hpp"
#include "profiling/analysis/step_table.hpp"
#include "profiling/analysis/top_operations.hpp"

namespace sidestream::analysis {

struct KernelRow {
  std::string name;
  std::array<std::uint32_t, 3> grid = {};
  std::array<std::uint32_t, 3> block = {};
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;
  bool tensor_cores = false;  // by its name
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t shortest_ns = 0;
  std::int64_t longest_ns = 0;
  std::optional<double> occupancy_percent = {};  // the profiler's estimate, weighted by duration
  std::optional<double> blocks_per_sm = {};
  KnownWork flops;
  KnownWork bytes;
};

// By total time, the longest first. Sums over all ranks.
std::vector<KernelRow> kernel_table(const std::vector<RankView>& ranks,
                                    const std::vector<CallTree>& trees);

}  // namespace sidestream::analysis
