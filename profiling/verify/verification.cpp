#include "profiling/verify/verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace sidestream::verify {
namespace {

// Of an interval of positive figures: beyond some width they only look like figures.
bool says_something(double low, double high) {
  constexpr double kWidest = 100;
  return high < kWidest * low;
}

double step_ms_of(const RecordedRun& run, int warm_up) {
  const auto typical = typical_step(run, warm_up);
  if (!typical)
    throw core::DataError(fmt::format(
        "{}: expected steps after the {} of the warm-up, found {} in all. Use more --steps, "
        "and --log-every 1 where steps were not logged",
        (run.folder / "metrics.jsonl").string(), warm_up, run.steps.size()));
  if (typical->step_ms <= 0)
    throw core::DataError(fmt::format(
        "{}: expected steps that take time (\"batch_cost_s\" above 0), found {} s in the median",
        (run.folder / "metrics.jsonl").string(), typical->step_ms / 1e3));
  return typical->step_ms;
}

std::string seed_of(const RecordedRun& run) {
  const auto found = run.config.find("seed");
  return found == run.config.end() ? "" : found->second;
}

std::optional<MemoryPeak> memory_of(const std::vector<RunPair>& pairs) {
  std::vector<double> base, fresh;
  for (const auto& [left, right] : pairs) {
    const auto one = typical_step(*left, 0), other = typical_step(*right, 0);
    if (!one || !other || !one->peak_memory_bytes || !other->peak_memory_bytes) return std::nullopt;
    base.push_back(static_cast<double>(*one->peak_memory_bytes));
    fresh.push_back(static_cast<double>(*other->peak_memory_bytes));
  }
  return MemoryPeak{median_of(base), median_of(fresh)};
}

std::optional<MachineChange> machine_of(const std::vector<RunPair>& pairs) {
  std::vector<MachinePair> states;
  const auto of_run = [](const RecordedRun& run) { return run.machine ? &*run.machine : nullptr; };
  for (const auto& [base, fresh] : pairs) states.push_back({of_run(*base), of_run(*fresh)});
  return machine_change(states);
}

// Of the geometric mean, as the ratio's: times scatter by factors, and none is below 0.
std::optional<statistics::Interval> interval_of(const std::vector<double>& times_ms) {
  std::vector<double> logarithms;
  for (const double time : times_ms) logarithms.push_back(std::log(time));
  const auto interval = statistics::mean_interval(logarithms);
  if (!interval) return std::nullopt;
  return statistics::Interval{std::exp(interval->mean), std::exp(interval->low),
                              std::exp(interval->high)};
}

void judge_step_time(Verification& result) {
  std::vector<Pair> pairs;
  std::vector<double> base, fresh;
  for (const BlockRow& row : result.blocks) {
    pairs.push_back({row.base_ms, row.fresh_ms});
    base.push_back(row.base_ms);
    fresh.push_back(row.fresh_ms);
  }
  result.base_interval_ms = interval_of(base);
  result.fresh_interval_ms = interval_of(fresh);
  result.base_ms = median_of(std::move(base));
  result.fresh_ms = median_of(std::move(fresh));
  result.step_time = estimate_ratio(pairs);
  if (!result.step_time) return;
  result.smallest_effect = smallest_effect(*result.step_time);
  result.blocks_for_effect = pairs_needed(*result.step_time, kEffectAskedFor);
}

double pct(double ratio) { return (ratio - 1) * 100; }

std::string gate_text(double allowed_pct, const RatioEstimate& estimate) {
  return fmt::format("at most {:g} % slower is allowed, the interval is {:+.1f} to {:+.1f} %",
                     allowed_pct, pct(estimate.low), pct(estimate.high));
}

// A step that computes is longer by as much as the clocks fell. Empty when they cannot explain that
// the whole interval lies above the limit.
std::string slower_by_clocks(const Verification& one, double limit) {
  const auto clocks = one.machine ? one.machine->ratio() : std::nullopt;
  if (!clocks || *clocks >= 1 || one.step_time->low * *clocks > limit) return "";
  return fmt::format(
      "the clocks fell by {:.1f} %, which may explain a step that is longer by {:.1f} %, the near "
      "end of the interval",
      (1 - *clocks) * 100, pct(one.step_time->low));
}

// The same of clocks that rose and may hide that the step is longer than the limit. Empty when they
// cannot.
std::string hidden_by_clocks(const Verification& one, double limit) {
  const auto clocks = one.machine ? one.machine->ratio() : std::nullopt;
  if (!clocks || *clocks <= 1 || one.step_time->high * *clocks <= limit) return "";
  return fmt::format("the clocks rose by {:.1f} %, which may hide a longer step",
                     (*clocks - 1) * 100);
}

// Nothing when the gate lets it pass.
std::optional<Decision> check_gate(const Verification& one, const Gates& gates) {
  if (!gates.fail_if_slower_pct) return std::nullopt;
  if (!one.step_time)
    return Decision{false, "one block has no interval: two or more are needed to judge",
                    GateCode::kCannotJudge};
  const double limit = 1 + *gates.fail_if_slower_pct / 100;
  const std::string text = gate_text(*gates.fail_if_slower_pct, *one.step_time);
  if (one.step_time->low > limit) {
    const std::string clocks = slower_by_clocks(one, limit);
    if (!clocks.empty())
      return Decision{false, "cannot be judged: " + clocks + "; " + text, GateCode::kCannotJudge};
    return Decision{false, "slower: " + text, GateCode::kSlower};
  }
  if (one.step_time->high > limit)
    return Decision{false, "cannot be judged: " + text, GateCode::kCannotJudge};
  if (const std::string clocks = hidden_by_clocks(one, limit); !clocks.empty())
    return Decision{false, "cannot be judged: " + clocks + "; " + text, GateCode::kCannotJudge};
  return std::nullopt;
}

bool learns_as_well(Convergence verdict) {
  return verdict == Convergence::kIdentical || verdict == Convergence::kSame ||
         verdict == Convergence::kBetter;
}

// Training on one batch takes the reading away: a proof of what the input costs, no version to
// take.
bool proves_input(const std::vector<Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(), [](const Difference& one) {
    return one.field == "fix-batch" && one.fresh == "on";
  });
}

std::string input_proof(const Verification& one) {
  const RatioEstimate& ratio = *one.step_time;
  if (verdict_of(ratio) == Verdict::kFaster)
    return fmt::format(
        "a proof, no version to take: without reading a step is shorter by {:.1f} to {:.1f} %, "
        "which "
        "is what the input costs",
        -pct(ratio.high), -pct(ratio.low));
  const bool refuted = ratio.low > 1 - kEffectAskedFor;
  return fmt::format(
      "a proof, no version to take: without reading a step changes by {:+.1f} to {:+.1f} %, {}",
      pct(ratio.low), pct(ratio.high),
      refuted ? "so the input does not bound it"
              : "which leaves open whether the input bounds it: more blocks would tell");
}

// What the clocks rose by may be all that the interval shows: a step that computes is shorter by as
// much. Empty when they cannot explain it.
std::string faster_by_clocks(const Verification& one) {
  const auto clocks = one.machine ? one.machine->ratio() : std::nullopt;
  if (!clocks || *clocks <= 1 || 1 / *clocks > one.step_time->high) return "";
  return fmt::format(
      "the clocks rose by {:.1f} %, which may explain a step that is shorter by {:.1f} "
      "%, the near end of the interval",
      (*clocks - 1) * 100, -pct(one.step_time->high));
}

// Why the clocks may be all that was measured; empty when they cannot.
std::string explained_by_clocks(const Verification& one) {
  if (!one.step_time) return "";
  const Verdict verdict = verdict_of(*one.step_time);
  if (verdict == Verdict::kFaster) return faster_by_clocks(one);
  return verdict == Verdict::kSlower ? slower_by_clocks(one, 1) : "";
}

// Of all pairs, each field once.
std::vector<Difference> all_differences(const std::vector<RunPair>& pairs) {
  std::vector<Difference> all;
  for (const auto& [base, fresh] : pairs) add_new_ones(differences_of(*base, *fresh), all);
  return all;
}

void refuse(const std::vector<Difference>& differences) {
  const std::string refused = refusal_text(differences);
  if (!refused.empty())
    throw core::ConfigError("the runs cannot be compared: " + refused +
                            ". --force compares them anyway");
}

}  // namespace

Verification verify_runs(const std::vector<RecordedRun>& base,
                         const std::vector<RecordedRun>& fresh, const Settings& settings) {
  if (base.empty() || base.size() != fresh.size())
    throw core::ConfigError(
        fmt::format("expected as many new runs as base runs, at least one of each; found {} and {}",
                    fresh.size(), base.size()));
  Verification result{.settings = settings,
                      .environment = base.front().environment,
                      .version = base.front().version};
  std::vector<RunPair> pairs;
  for (std::size_t i = 0; i < base.size(); ++i) {
    pairs.push_back({&base[i], &fresh[i]});
    result.base_curves.push_back(loss_curve_of(base[i]));
    result.fresh_curves.push_back(loss_curve_of(fresh[i]));
    result.blocks.push_back({.block = static_cast<int>(i) + 1,
                             .seed = seed_of(base[i]),
                             .base_ms = step_ms_of(base[i], settings.warm_up),
                             .fresh_ms = step_ms_of(fresh[i], settings.warm_up)});
  }
  result.differences = all_differences(pairs);
  if (!settings.force) refuse(result.differences);
  judge_step_time(result);
  result.parts = parts_of_change(pairs, settings.warm_up);
  result.memory = memory_of(pairs);
  result.machine = machine_of(pairs);
  result.convergence = compare_convergence(pairs);
  if (!same_training(result.differences) && !result.convergence.ends_in_no_number)
    withhold_verdict(result.convergence, "the two sides differ in what they learn, or how");
  return result;
}

Verification verify_step_times(std::vector<BlockRow> blocks, const Settings& settings) {
  if (blocks.empty()) throw core::ConfigError("expected step times of one block or more");
  Verification result{.settings = settings, .blocks = std::move(blocks)};
  judge_step_time(result);
  result.convergence.reason = "no metrics.jsonl of both sides";
  return result;
}

std::string verdict_word(const Verification& one) {
  if (!one.step_time || !explained_by_clocks(one).empty()) return "inconclusive";
  return name_of(verdict_of(*one.step_time));
}

std::string interval_text(const std::optional<statistics::Interval>& interval_ms) {
  if (!interval_ms || !says_something(interval_ms->low, interval_ms->high)) return "";
  return fmt::format("{:.4g} to {:.4g} ms", interval_ms->low, interval_ms->high);
}

namespace {

// What no difference means: little, where the blocks could not have shown one.
std::string scatter_text(const Verification& one) {
  if (verdict_word(one) != name_of(Verdict::kNoDifferenceShown) || !one.smallest_effect ||
      *one.smallest_effect <= kEffectAskedFor)
    return "";
  return fmt::format(
      "these {} blocks scatter too much to be counted on for one below {} (more blocks, or a "
      "machine without other work, would be); ",
      one.blocks.size(), effect_text(*one.smallest_effect));
}

const char* sign_text(const Verification& one) {
  const double pairs = pct(one.step_time->ratio), sides = pct(one.fresh_ms / one.base_ms);
  constexpr double kShown = 0.05;  // less is printed as 0.0 %
  const bool other = pairs * sides < 0 && std::min(std::abs(pairs), std::abs(sides)) > kShown;
  return other ? ", of the other sign: that is how far they scatter" : "";
}

constexpr double kLargestEffect = 10;  // that is told as a number

}  // namespace

bool has_usable_interval(const RatioEstimate& ratio) {
  return says_something(ratio.low, ratio.high);
}

std::string effect_text(double effect) {
  if (effect > kLargestEffect) return fmt::format("a factor of more than {:g}", kLargestEffect);
  return effect < 0.5 ? fmt::format("{:.1f} %", effect * 100)
                      : fmt::format("a factor of {:.3g}", 1 + effect);
}

std::string least_effect_text(double effect) {
  return effect_text(effect) + (effect > kLargestEffect ? "" : " or more");
}

std::string verdict_sentence(const Verification& one) {
  if (!one.step_time)
    return fmt::format(
        "inconclusive: one run a side, {:.4g} and {:.4g} ms a step; two or more blocks are needed",
        one.base_ms, one.fresh_ms);
  const RatioEstimate& ratio = *one.step_time;
  const std::string clocks = explained_by_clocks(one);
  std::string text = fmt::format(
      "{}: {}{}by pairs a step takes {:+.1f} % (geometric mean of the ratios of {} blocks, {}); by "
      "the median of each side {:+.1f} % ({:.4g} ms against "
      "{:.4g} ms){}",
      verdict_word(one), clocks.empty() ? "" : clocks + "; ", scatter_text(one), pct(ratio.ratio),
      ratio.pairs,
      has_usable_interval(ratio)
          ? fmt::format("95 % interval {:+.1f} to {:+.1f} %", pct(ratio.low), pct(ratio.high))
          : "no usable interval: more --blocks give one",
      pct(one.fresh_ms / one.base_ms), one.fresh_ms, one.base_ms, sign_text(one));
  if (!one.machine) return text;
  for (const std::string& warning : {clock_warning(*one.machine), load_warning(*one.machine)})
    text += warning.empty() ? "" : "; " + warning;
  return text;
}

Decision decide(const Verification& one, const Gates& gates) {
  if (one.convergence.verdict == Convergence::kWorse)
    return {false, "learns worse: " + one.convergence.reason, GateCode::kDiverged};
  if (const auto failed = check_gate(one, gates)) return *failed;
  if (!one.step_time) return {false, verdict_sentence(one), GateCode::kPassed};
  if (proves_input(one.differences)) return {false, input_proof(one), GateCode::kPassed};
  const Verdict verdict = verdict_of(*one.step_time);
  const bool faster = verdict == Verdict::kFaster;
  const std::string clocks = explained_by_clocks(one);
  if (!clocks.empty())
    return {false, fmt::format("{}, but {}", name_of(verdict), clocks), GateCode::kPassed};
  if (faster && !learns_as_well(one.convergence.verdict))
    return {false, "faster, but convergence not shown: " + one.convergence.reason,
            GateCode::kPassed};
  const std::string learns = one.convergence.verdict == Convergence::kNotMeasured
                                 ? "convergence not measured"
                                 : std::string("convergence ") + name_of(one.convergence.verdict);
  return {faster, fmt::format("{}, {}", verdict_word(one), learns), GateCode::kPassed};
}

}  // namespace sidestream::verify
