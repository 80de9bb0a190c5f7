#include "launch/trace/single_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "profiling/report/run_directory.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kNamed = 4;

template <typename Paths>
std::string names_of(const Paths& paths) {
  std::vector<std::string> names;
  for (const auto& one : paths) {
    if (names.size() < kNamed) names.push_back(one.string());
  }
  const std::size_t others = paths.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     others > 0 ? fmt::format(" and {} more", others) : "");
}

}  // namespace

trace::FoundTraces traces_of_one_run(const std::vector<std::filesystem::path>& inputs) {
  trace::FoundTraces traces = trace::look_for_traces(inputs);
  std::vector<std::filesystem::path> places;
  for (const trace::TraceFile& one : traces.files) places.push_back(one.path);
  const auto runs = report::run_directories_of(places);
  if (runs.size() < 2) return traces;
  throw core::ConfigError(fmt::format(
      "these are traces of {} run directories, and this is for those of one run: give one of them, "
      "or two to `sidestream-trace compare`: {}",
      runs.size(), names_of(runs)));
}

std::optional<std::string> left_out_text(const trace::FoundTraces& found) {
  if (found.left_out.empty()) return std::nullopt;
  return fmt::format(
      "left out, for others are named as profilers name their traces: {}. Name files one by one to "
      "have them read",
      names_of(found.left_out));
}

}  // namespace sidestream::launch
