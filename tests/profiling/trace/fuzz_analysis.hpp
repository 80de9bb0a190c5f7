// What fuzz targets of trace readers do with a file, as `sidestream-trace report` does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.hpp"
#include "profiling/analysis/analysis.hpp"
#include "profiling/analysis/details.hpp"

namespace sidestream::test {

// By its bytes, so that an input always takes the same way.
inline bool is_one_in_eight(const std::uint8_t* data, std::size_t size) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < size; ++i) hash = hash * 1099511628211u + data[i];
  return (hash >> 32) % 8 == 0;
}

// Of what is accepted every step's budget closes.
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
