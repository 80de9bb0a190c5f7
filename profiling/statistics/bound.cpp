#include "profiling/statistics/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sidestream::statistics {
namespace {

struct Share {
  double value;
  std::string word;
};
using Shares = std::array<Share, 4>;

// The first of equals is the largest.
Shares shares_of(const StepParts& parts, const char* compute_word) {
  const double io = parts.io_ns / parts.window_ns, comm = parts.comm_ns / parts.window_ns,
               compute = parts.compute_ns / parts.window_ns;
  return {{{compute, compute_word},
           {comm, "comm"},
           {io, "io"},
           {std::max(0.0, 1 - io - comm - compute), "cpu"}}};
}

double share_named(const Shares& shares, const std::string& word) {
  return std::find_if(shares.begin(), shares.end(),
                      [&](const Share& share) { return share.word == word; })
      ->value;
}

std::string name_of(const std::string& word) {
  if (word == "comm") return "communication";
  if (word == "io") return "waiting for data";
  return word == "cpu" ? "other work of the host" : "computing";
}

// One value a step, whose mean is the difference of the shares of all steps together, and whose
// scatter is that of such a ratio of sums (linearised; W. G. Cochran, "Sampling Techniques", 2.11):
// a long step weighs as much as its time.
std::vector<double> leads_of(std::span<const StepParts> steps, const Bound& bound) {
  std::vector<double> first_minus_second_ns, windows_ns;
  for (const StepParts& step : steps) {
    if (step.window_ns <= 0) continue;
    const Shares own = shares_of(step, bound.compute_word.c_str());
    first_minus_second_ns.push_back(
        (share_named(own, bound.word) - share_named(own, bound.runner_up)) * step.window_ns);
    windows_ns.push_back(step.window_ns);
  }
  const double all_ns = std::accumulate(windows_ns.begin(), windows_ns.end(), 0.0);
  const double lead =
      std::accumulate(first_minus_second_ns.begin(), first_minus_second_ns.end(), 0.0) / all_ns;
  const double mean_ns = all_ns / static_cast<double>(windows_ns.size());
  std::vector<double> leads;
  for (std::size_t i = 0; i < windows_ns.size(); ++i)
    leads.push_back(lead + (first_minus_second_ns[i] - lead * windows_ns[i]) / mean_ns);
  return leads;
}

}  // namespace

void StepParts::add(const StepParts& other) noexcept {
  window_ns += other.window_ns;
  io_ns += other.io_ns;
  comm_ns += other.comm_ns;
  compute_ns += other.compute_ns;
}

std::optional<Bound> find_bound(const StepParts& sum, std::span<const StepParts> steps,
                                const char* compute_word) {
  if (sum.window_ns <= 0) return std::nullopt;
  Shares shares = shares_of(sum, compute_word);
  Bound bound{.io = shares[2].value,
              .cpu = shares[3].value,
              .compute = shares[0].value,
              .comm = shares[1].value,
              .compute_word = compute_word};
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.value > b.value; });
  bound.word = shares[0].word;
  bound.runner_up = shares[1].word;
  bound.lead = series_interval(leads_of(steps, bound));
  // One part can lead another by a whole step at most.
  if (bound.lead) {
    bound.lead->low = std::max(bound.lead->low, -1.0);
    bound.lead->high = std::min(bound.lead->high, 1.0);
  }
  return bound;
}

std::string text_of(const Bound& bound) {
  const std::string first = name_of(bound.word), second = name_of(bound.runner_up);
  if (!bound.lead)
    return fmt::format("{}: not sure (too few steps to tell how far it leads {})", first, second);
  const double low = bound.lead->low * 100, high = bound.lead->high * 100;
  if (bound.is_sure())
    return fmt::format("{} (it leads {} by {:.1f} to {:.1f} % of a step, 95 %)", first, second, low,
                       high);
  if (high < 0)
    return fmt::format(
        "{} or by {}: not sure (the second leads the first by {:.1f} to {:.1f} % of a step in the "
        "newest steps, 95 %)",
        first, second, -high, -low);
  return fmt::format(
      "{} or by {}: not sure (the first minus the second: {:+.1f} to {:+.1f} % of a step, 95 %)",
      first, second, low, high);
}

}  // namespace sidestream::statistics
