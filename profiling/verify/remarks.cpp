#include "profiling/verify/remarks.hpp"

#include <fmt/format.h>

#include <cmath>

namespace sidestream::verify {

std::string trace_remark(const Verification& one) {
  if (!one.profiles) return "";
  const SideProfile &base = one.profiles->base, &fresh = one.profiles->fresh;
  if (base.profiler_off != fresh.profiler_off)
    return fmt::format(
        "The {} side was profiled, the other one only recorded: what the profiler costs is in the "
        "difference; give both sides the same --profile",
        base.profiler_off ? "new" : "base");
  constexpr double kWorthAWord = 0.01;
  const double timed = one.fresh_ms - one.base_ms, traced = fresh.step_ms - base.step_ms;
  const bool disagree = timed * traced < 0 && std::abs(timed) > kWorthAWord * one.base_ms &&
                        std::abs(traced) > kWorthAWord * base.step_ms;
  return disagree
             ? "They do not agree which side is faster, timed steps and traces: the verdict is "
               "of the timed steps, the parts of the change explain the traces only"
             : "";
}

std::vector<std::string> remarks_of(const Verification& one) {
  std::vector<std::string> remarks = {trace_remark(one)};
  if (one.machine) {
    remarks.push_back(clock_warning(*one.machine));
    remarks.push_back(load_warning(*one.machine));
  }
  std::erase(remarks, "");
  return remarks;
}

}  // namespace sidestream::verify
