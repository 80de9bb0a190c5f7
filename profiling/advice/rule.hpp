// One rule of the advice: what it looks at, when it speaks, and what it says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiling/advice/facts.hpp"
#include "profiling/analysis/verdict.hpp"

namespace sidestream::advice {

struct Evidence {
  std::string name;
  double value = 0;
  std::string unit;
  std::string denominator = {};  // what a share is a share of
};

// What a rule found. The bound is the time that would vanish at most over the step time; empty when
// nothing in the trace limits it.
struct Found {
  std::optional<double> bound = {};  // 0.2: 20 % of the step
  std::vector<Evidence> evidence = {};
  int rank = -1;                     // below 0: all
  std::string fix = {};              // instead of the rule's own
  bool bounds_recorded_time = true;  // else a share of any step, recorded or not
};

// What came of a rule: it found something, it looked and found nothing, or it could not look.
struct Outcome {
  std::optional<Found> found = {};
  std::string needs = {};  // not empty: could not look
};
inline Outcome nothing_found() { return {}; }
inline Outcome could_not_look(std::string needs) { return {.needs = std::move(needs)}; }
inline Outcome found(Found what) { return {.found = std::move(what)}; }

inline constexpr const char* kNeedsSamples = "system samples inside the steps (--sample-hz 20)";
inline constexpr const char* kNeedsSteps = "steps (ranges ProfilerStep#N) in the traces";

inline constexpr const char* kNeedsDevice =
    "device events in the traces, which are of the host alone and do not say that it has no device";
inline constexpr const char* kNeedsOperators = "operators of the host in the traces";
inline constexpr const char* kNeedsInputRanges =
    "ranges of reading batches (data, h2d, or those of PyTorch's DataLoader) in the traces";

// Of a rule about where the time of a step goes: why it cannot know, or nothing where it can.
inline std::optional<Outcome> without_budget(const Facts& facts) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (facts.traces.without_device) return could_not_look(kNeedsDevice);
  if (facts.traces.hidden_kernels) return could_not_look(analysis::kNeedsGraphNodes);
  return std::nullopt;
}

// Of a rule about kernels: why it has nothing to look at, or nothing where it has.
inline std::optional<Outcome> without_kernels(const Facts& facts) {
  if (const auto nothing = without_budget(facts)) return nothing;
  if (!facts.on_device) return nothing_found();
  if (!facts.kernels) return could_not_look("kernels in the traces");
  return std::nullopt;
}

// What bound and evidence of a rule are taken from: the mean step alone, which every rank has of
// its own, or also what is known of all ranks together.
enum class Figures { kOfAllRanks, kOfStep };

struct Rule {
  const char* id;
  const char* title;
  double threshold;  // of the step, unless `looks_at` says otherwise
  const char* looks_at;
  const char* source;  // of the threshold
  const char* fix;
  const char* false_if;
  const char* check;  // what to look at afterwards
  Outcome (*look)(const Facts& facts, const Rule& rule);
  PlaceKind place = PlaceKind::kNone;  // an event of which kind shows it
  Figures figures = Figures::kOfAllRanks;
  bool before_all = false;  // said first: what others find may follow from it
};

inline Evidence share(std::string name, double value, std::string denominator = "step") {
  return {std::move(name), value * 100, "%", std::move(denominator)};
}
inline Evidence milliseconds(std::string name, double nanoseconds) {
  return {std::move(name), nanoseconds * 1e-6, "ms", "step"};
}

// All rules, by what they look at.
std::vector<Rule> input_rules();
std::vector<Rule> communication_rules();
std::vector<Rule> host_rules();
std::vector<Rule> device_rules();
std::vector<Rule> machine_rules();

}  // namespace sidestream::advice
