// What the GPUs' own counters say about the steps, where Nsight Systems sampled them.
//
// Samples are taken at equal distances and count alike; a sample with its time inside of a step is
// that step's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

// Means; nothing: the GPU has no such counter, or no sample lies inside.
struct DeviceCounters {
  std::int64_t samples = 0;                  // moments
  std::optional<double> tensor_active = {};  // share of the cycles of all SMs
  std::optional<double> sm_active = {};      // the same: an SM had work
  std::optional<double> dram_read = {};      // share of the peak bandwidth
  std::optional<double> dram_written = {};

  // Of the cycles in which an SM had work.
  std::optional<double> tensor_core_share() const;
};

struct DeviceCounterTable {
  std::vector<std::vector<DeviceCounters>> of_steps;  // by file, then by its steps
  std::map<int, DeviceCounters>
      of_ranks;  // over all samples of steps that count; without: left out

  // Of all these ranks together.
  std::optional<double> tensor_core_share() const;
};

DeviceCounterTable device_counters(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
