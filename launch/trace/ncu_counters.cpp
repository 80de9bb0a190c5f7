#include "launch/trace/ncu_counters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace sidestream::launch {

advice::NcuByKernel read_counters(const std::vector<std::filesystem::path>& files,
                                  const analysis::Analysis& analysis) {
  advice::NcuByKernel all;
  for (const std::filesystem::path& file : files) {
    const auto counters = advice::counters_by_kernel(advice::read_ncu_csv(file));
    const bool fits = std::any_of(
        analysis.operations.begin(), analysis.operations.end(),
        [&](const auto& one) { return advice::counters_for(counters, one.name).has_value(); });
    if (!fits)
      throw core::DataError(core::FileFault{
          file.string(), std::nullopt, "counters of kernels that are in the traces",
          fmt::format("{} only: is it of another program?", counters.begin()->first)});
    for (const auto& [kernel, one] : counters) all[kernel] = one;
  }
  return all;
}

}  // namespace sidestream::launch
