// Counters of the traces: what the processors, the memory, the disks, the network and the devices
// did while the events of the timeline happened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct CounterRow {
  int rank = 0;
  std::string counter;  // with its unit: "process cpu [%]"
  std::string series;
  std::int64_t samples = 0;
  double mean = 0;
  double least = 0;
  double most = 0;
};

// A row for each series of each rank, over its files, by rank and name. Samples count alike: they
// are taken at equal distances.
std::vector<CounterRow> counter_table(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
