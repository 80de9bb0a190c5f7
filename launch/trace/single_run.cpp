#include "launch/trace/single_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>

#include "core/base/error.hpp"
#include "profiling/report/run_directory.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kNamed = 4;

std::string names_of(const std::set<std::filesystem::path>& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs) {
    if (names.size() < kNamed) names.push_back(run.string());
  }
  const std::size_t others = runs.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     others > 0 ? fmt::format(" and {} more", others) : "");
}

}  // namespace

std::vector<trace::TraceFile> traces_of_one_run(const std::vector<std::filesystem::path>& inputs) {
  std::vector<trace::TraceFile> traces = trace::find_traces(inputs);
  std::vector<std::filesystem::path> places;
  for (const trace::TraceFile& one : traces) places.push_back(one.path);
  const auto runs = report::run_directories_of(places);
  if (runs.size() < 2) return traces;
  throw core::ConfigError(fmt::format(
      "these are traces of {} run directories, and this is for those of one run: give one of them, "
      "or two to `sidestream-trace compare`: {}",
      runs.size(), names_of(runs)));
}

}  // namespace sidestream::launch
