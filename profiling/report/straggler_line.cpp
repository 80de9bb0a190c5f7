#include "profiling/report/straggler_line.hpp"

#include <fmt/format.h>

#include "core/base/real.hpp"
#include "profiling/report/table.hpp"
#include "profiling/statistics/late_rank.hpp"

namespace sidestream::report {
namespace {

using core::real;

std::string nobody_for_sure(const analysis::Analysis& all) {
  if (all.usually_last) {
    const statistics::UsuallyLast& one = *all.usually_last;
    return fmt::format(
        "Stragglers: none for sure; rank {} is last in {} of {} steps, at {} a step by the median; "
        "a few steps scatter too much for an interval",
        one.rank, one.steps_last, one.steps, duration_text(real(one.median_cost_ns)));
  }
  if (!all.rotating_wait_ns) return "Stragglers: none";
  return fmt::format(
      "Stragglers: none for sure; the last rank changes from step to step, or chance may explain "
      "it; those that wait for it lose {} a step",
      duration_text(real(*all.rotating_wait_ns)));
}

}  // namespace

std::string straggler_line(const analysis::Analysis& all) {
  if (all.ranks.size() < 2 || all.matches.matched.empty()) return "";
  if (!all.straggler) return nobody_for_sure(all);
  const statistics::Straggler& one = *all.straggler;
  const std::string sure = one.cost_low_ns ? fmt::format("between {} and {} with 95 %",
                                                         duration_text(real(*one.cost_low_ns)),
                                                         duration_text(real(*one.cost_high_ns)))
                                           : "too few steps to tell from chance";
  return fmt::format("Straggler{}: {}{}{}, cost{} the others {} a step; last in {} of {} steps; {}",
                     one.also.empty() ? "" : "s", statistics::ranks_text(one),
                     one.phase.empty() ? "" : " ", statistics::phase_text(one.phase),
                     one.also.empty() ? "s" : "", duration_text(real(one.cost_ns_per_step)),
                     one.steps_last, one.steps, sure);
}

}  // namespace sidestream::report
