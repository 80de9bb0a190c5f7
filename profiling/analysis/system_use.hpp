// How busy processors and disks were during the steps, from the samples that the run recorded
// (--sample-hz).
//
// A sample is of the time since the one before it, so it counts as much as of that time lies in
// steps. The first one of a file is left out: what it is of is not in the file. Means over the
// ranks; of the machine, which every rank of a node sees alike, as well.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

struct SystemUse {
  std::size_t samples = 0;                         // moments with samples inside of steps
  std::optional<double> process_cores = {};        // that the threads of a rank ran on: 1.8
  std::optional<double> process_cores_short = {};  // that they were ready for, and did not get
  std::optional<double> machine_cpu = {};          // share of all processors
  std::optional<double> disk_busy = {};            // share of the time, of the busiest disk
  std::string disk = {};
  std::optional<double> gpu_clock_mhz = {};
  std::optional<double> gpu_held_down = {};  // share of the time: by power or heat
  // Energy of all GPUs of the job over the tokens of the same time; nothing while one is missing.
  std::optional<double> joules_per_token = {};
};

SystemUse find_system_use(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
