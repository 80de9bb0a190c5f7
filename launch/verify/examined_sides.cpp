#include "launch/verify/examined_sides.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {
namespace {

std::unique_ptr<ExaminedSides> read_traces(const std::vector<PlannedRun>& plan) {
  auto sides = std::unique_ptr<ExaminedSides>(
      new ExaminedSides{{{plan.front().folder}, {}}, {{plan.back().folder}, {}}});
  for (const auto& [run, traces] :
       {std::pair(&plan.front(), &sides->base), std::pair(&plan.back(), &sides->fresh)}) {
    std::filesystem::create_directories(run->folder / "report");
    core::write_file_atomically(run->folder / "report" / "report.json", traces->report_text());
  }
  return sides;
}

}  // namespace

ProfileReading read_profiles(const VerifyOptions& options, const ProfiledRuns& profiled) {
  if (!profiled.missing.empty()) return {.missing = profiled.missing};
  try {
    return {.sides = read_traces(plan_profiles(options))};
  } catch (const core::Error& error) {
    return {.missing = std::string("their traces cannot be read: ") + error.what()};
  }
}

}  // namespace sidestream::launch
