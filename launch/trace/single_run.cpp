#include "launch/trace/single_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "core/base/error.hpp"
#include "profiling/report/run_directory.hpp"

namespace sidestream::launch {

std::vector<std::filesystem::path> inputs_of_one_run(std::vector<std::filesystem::path> inputs) {
  const auto runs = report::run_directories_of(inputs);
  if (runs.size() < 2) return inputs;
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.string());
  throw core::ConfigError(fmt::format(
      "these are traces of {} run directories, and this is for those of one run: give one of them, "
      "or two to `sidestream-trace compare`: {}",
      names.size(), fmt::join(names, ", ")));
}

}  // namespace sidestream::launch
