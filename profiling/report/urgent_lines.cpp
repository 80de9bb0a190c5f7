#include "profiling/report/urgent_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/base/real.hpp"
#include "profiling/report/table.hpp"
#include "profiling/statistics/late_rank.hpp"

namespace sidestream::report {
namespace {

using analysis::Analysis;

using core::real;

std::string place_text(const analysis::StandingRank& one) {
  const std::string step = one.step ? fmt::format(" of step {}", *one.step) : "";
  if (!one.waits()) return (one.phase.empty() ? "in no phase" : "in " + one.phase) + step;
  const std::string bucket = one.bucket < 0 ? "" : fmt::format(" (bucket {})", one.bucket);
  const std::string phase = one.phase.empty() ? "" : ", in " + one.phase;
  return fmt::format("waits in {}{}{}{}", one.collective, bucket, phase, step);
}

// Of a hang: the others may wait because a rank is gone.
std::string gone_text(const std::vector<int>& ranks) {
  std::string text = statistics::ranks_text(ranks);
  text.front() = 'R';
  return text +
         " left no recording of the end (ended, killed or stopped, unless the file is "
         "elsewhere); ";
}

// Those that wait for no other rank come first.
std::string standing_text(const std::vector<analysis::StandingRank>& ranks) {
  constexpr std::size_t kMostNamed = 8;
  std::string text;
  for (const analysis::StandingRank& one :
       std::span(ranks).first(std::min(ranks.size(), kMostNamed)))
    text += fmt::format("{}rank {} {} for {}", text.empty() ? "" : "; ", one.rank, place_text(one),
                        duration_text(real(one.since_ns)));
  if (ranks.size() > kMostNamed)
    text += fmt::format("; {} more in a step", ranks.size() - kMostNamed);
  return text;
}

// Of a hang in which every rank is inside a collective.
std::string waiting_text(const analysis::Hang& hang) {
  if (!hang.is_sure || !hang.all_wait()) return "";
  const std::vector<int> behind = hang.awaited();
  if (!behind.empty())
    return fmt::format("; {} {} in an earlier one than the others, which wait for it",
                       statistics::ranks_text(behind), behind.size() == 1 ? "is" : "are");
  if (!hang.all_in_one())
    return "; the ranks are in different collectives: --check-collectives on says whether they "
           "disagree on which comes next";
  return "; every rank is inside it: a link between them fails, a process was stopped there, or a "
         "GPU does not come to it (flight/ in the run directory has what each rank's threads did)";
}

std::string hang_line(const analysis::Hang& hang) {
  std::string text = hang.without_records.empty() ? (hang.is_sure ? "Hang: " : "Cut off: ")
                                                  : gone_text(hang.without_records);
  text += standing_text(hang.ranks);
  if (!hang.between_steps.empty())
    text += fmt::format("; {} in no step", statistics::ranks_text(hang.between_steps));
  if (!hang.past.empty()) text += fmt::format("; {} past it", statistics::ranks_text(hang.past));
  return text + " when the recording ended" + waiting_text(hang);
}

std::string phase_words(const std::string& phase) {
  return phase.empty() ? "" : " " + statistics::phase_text(phase);
}

std::string outlier_line(const statistics::Outlier& one) {
  return fmt::format("Outlier: step {} took {}, {:.0f} times the median: rank {}{}", one.step,
                     duration_text(real(one.length_ns)), one.medians, one.rank,
                     phase_words(one.phase));
}

}  // namespace

std::vector<std::string> fault_lines(const Analysis& all) {
  std::vector<std::string> lines;
  if (all.hang) lines.push_back(hang_line(*all.hang));
  for (const statistics::Outlier& one : all.outliers) lines.push_back(outlier_line(one));
  return lines;
}

std::string late_rank_line(const Analysis& all) {
  if (!all.straggler || !all.straggler->is_sure()) return "";
  const statistics::Straggler& late = *all.straggler;
  const bool alone = late.also.empty();
  return fmt::format("{} {} late{}, cost{} the others {} a step", statistics::ranks_text(late),
                     alone ? "is" : "are", phase_words(late.phase), alone ? "s" : "",
                     duration_text(real(late.cost_ns_per_step)));
}

std::vector<std::string> urgent_lines(const Analysis& all) {
  std::vector<std::string> lines = fault_lines(all);
  const std::string late = late_rank_line(all);
  if (!late.empty()) lines.push_back(late);
  return lines;
}

}  // namespace sidestream::report
