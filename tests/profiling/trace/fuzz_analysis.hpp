// What fuzz targets of trace readers do with a file, as `sidestream-trace report` does.
#pragma once

#include <cstdlib>
#include <filesystem>

#include "core/base/error.hpp"
#include "profiling/analysis/analysis.hpp"
#include "profiling/analysis/details.hpp"

namespace sidestream::test {

inline void read_and_analyse(const std::filesystem::path& file) {
  try {
    trace::TraceSet set = trace::load_traces(trace::find_traces({file}), {.threads = 1});
    const analysis::Analysis all = analysis::analyse(set, 1);
    analysis::look_closer(all);
    for (const analysis::RankView& rank : all.ranks) {
      for (const analysis::StepRow& step : rank.steps) {
        const analysis::StepBudget& b = step.budget;
        const std::int64_t parts =
            b.compute_ns + b.exposed_comm_ns + b.exposed_memcpy_ns + b.idle_ns;
        if (parts != b.window_ns || step.idle.sum_ns() != b.idle_ns) std::abort();
      }
    }
  } catch (const core::DataError&) {
  }
}

}  // namespace sidestream::test
