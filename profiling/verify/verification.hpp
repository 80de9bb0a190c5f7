// One verification: runs of a base and of a new version in pairs, what came of it, and whether the
// new version is taken.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiling/statistics/mean_interval.hpp"
#include "profiling/verify/change.hpp"
#include "profiling/verify/comparability.hpp"
#include "profiling/verify/convergence.hpp"
#include "profiling/verify/loss_curve.hpp"
#include "profiling/verify/paired_ratio.hpp"
#include "profiling/verify/side_profile.hpp"
#include "profiling/verify/trace_change.hpp"

namespace sidestream::verify {

struct Settings {
  std::string command = {};     // as it was called
  std::string base_flags = {};  // or the name of the side
  std::string fresh_flags = {};
  int warm_up = 3;     // steps left out at the start of each run
  bool force = false;  // judge runs that cannot be compared all the same
};

struct BlockRow {
  int block = 0;  // from 1
  std::string seed = {};
  double base_ms = 0;  // median step
  double fresh_ms = 0;
};

struct MemoryPeak {
  double base_bytes = 0;  // medians over the runs of the first rank's peak
  double fresh_bytes = 0;
};

// Profiled runs, which no timed run is: what each side spends its time on, and what changed.
struct Profiles {
  SideProfile base = {};
  SideProfile fresh = {};
  TraceChange change = {};
};

// The base against itself on one batch: whether it waits for input, as the advice says.
struct InputProof {
  std::string finding = {};              // title of the rule
  std::optional<double> bound_pct = {};  // the most that it promised
  std::vector<BlockRow> blocks = {};     // new: on one batch
  std::optional<RatioEstimate> step_time = {};
  std::string verdict = {};  // sentences
  std::string reason = {};
};

// A line of the decision log.
struct Trial {
  std::string time = {};
  std::string base_flags = {};
  std::string fresh_flags = {};
  std::string verdict = {};
  bool accepted = false;
  std::string reason = {};
};

struct Verification {
  Settings settings = {};
  std::map<std::string, std::string> environment = {};  // of the first base run
  std::string version = {};
  std::vector<Difference> differences = {};
  std::vector<BlockRow> blocks = {};
  double base_ms = 0;  // medians over the blocks
  double fresh_ms = 0;
  // 95 %, of the geometric mean over the blocks; nothing below three of them.
  std::optional<statistics::Interval> base_interval_ms = {};
  std::optional<statistics::Interval> fresh_interval_ms = {};
  std::optional<RatioEstimate> step_time = {};  // empty for one block: inconclusive
  std::optional<double> smallest_effect = {};   // that as many blocks show in 80 % of cases
  std::optional<int> blocks_for_effect = {};    // that show a change of kEffectAskedFor
  std::vector<Part> parts = {};
  ConvergenceResult convergence = {};
  std::vector<LossCurve> base_curves = {};  // one a run; empty: step times only
  std::vector<LossCurve> fresh_curves = {};
  std::optional<MemoryPeak> memory = {};
  std::optional<MachineChange> machine = {};  // empty: not measured
  std::optional<Profiles> profiles = {};
  std::string profiles_missing = {};       // why there are none
  std::optional<InputProof> proof = {};    // empty: nothing to prove
  std::vector<Trial> trials = {};          // before this one
  std::vector<std::string> commands = {};  // that a run of each side was started with
};

inline constexpr double kEffectAskedFor = 0.03;

// "faster", "slower", "no difference shown", "inconclusive"
std::string verdict_word(const Verification& one);
// "97.1 to 103 ms"; empty for too few blocks, and where they scatter too much to say anything.
std::string interval_text(const std::optional<statistics::Interval>& interval_ms);
// Whether an interval says anything: that of two blocks which scatter spans many powers of ten.
bool has_usable_interval(const RatioEstimate& ratio);
// A change of a step time that could be shown: "3.1 %", and from half as much again on "a factor of
// 1.9": nothing is 132 % shorter.
std::string effect_text(double effect);
// "3.1 % or more".
std::string least_effect_text(double effect);
// The verdict with its numbers, in one sentence.
std::string verdict_sentence(const Verification& one);

// base[i] and fresh[i] are one block. Throws core::ConfigError when the sides have no or another
// number of runs, or unless forced when they cannot be compared; core::DataError when a run has no
// step after the warm-up.
Verification verify_runs(const std::vector<RecordedRun>& base,
                         const std::vector<RecordedRun>& fresh, const Settings& settings);

// Of step times alone, such as those of traces: nothing is known of convergence and memory.
Verification verify_step_times(std::vector<BlockRow> blocks, const Settings& settings);

// Gates for scripts. The codes are not among those of a training process.
enum class GateCode : int {
  kPassed = 0,
  kSlower = 10,       // by more than allowed
  kBelowTarget = 11,  // MFU
  kCannotJudge = 12,  // too few blocks, or the figure is not there
  kDiverged = 13,     // the new version learns worse
};

struct Gates {
  std::optional<double> fail_if_slower_pct = {};
};

struct Decision {
  bool accepted = false;
  std::string reason = {};  // one sentence
  GateCode code = GateCode::kPassed;
};

// Accepted: shown to be faster, by more than a rise of the clocks alone would make it, and shown to
// learn the same or better. A new side with --fix-batch on is a proof of what the input costs and
// never accepted. Slower by more than the gate allows means that the whole interval lies above it,
// by more than a fall of the clocks alone would bring; when the interval reaches over the gate, it
// cannot be judged.
Decision decide(const Verification& one, const Gates& gates);

}  // namespace sidestream::verify
