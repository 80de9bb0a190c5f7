// The runs of a verification, in the order in which they are made, and what each is started with.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "launch/options/verify_options.hpp"
#include "profiling/verify/comparability.hpp"

namespace sidestream::launch {

enum class Side { kBase, kNew };

enum class RunPurpose {
  kTimed,    // in a block: what the verdict rests on
  kProfile,  // where the time goes
  kProof,    // in a block of a proof: the base, and the base on one batch
};

struct PlannedRun {
  RunPurpose purpose = RunPurpose::kTimed;
  int block = 1;
  Side side = Side::kBase;       // of a proof: new is the one on one batch
  std::filesystem::path folder;  // run directory
  std::int64_t steps = 0;
  std::vector<std::string> train_arguments;  // after `train`
};

std::string describe(const PlannedRun& run);  // "block 3, base", "profile, new", "proof 1, base"

// Blocks take turns in which side goes first, so that a drift of the machine favours neither.
std::vector<PlannedRun> plan_runs(const VerifyOptions& options);

// One profiled run of each side; none with --profile off. After the timed runs and never one of
// them: the profiler costs time.
std::vector<PlannedRun> plan_profiles(const VerifyOptions& options);

// Blocks of the base against itself with --fix-batch on, which takes the reading away. Runs as long
// as the timed ones; three blocks, because the interval of two is six times as wide.
inline constexpr int kProofBlocks = 3;
std::vector<PlannedRun> plan_proof(const VerifyOptions& options);

// mpirun as launch/run calls it; one rank on this machine starts without it.
std::vector<std::string> start_command(const VerifyOptions& options, const PlannedRun& run,
                                       const std::filesystem::path& program);

// What a side trains with: every setting but the run directory. Throws ConfigError, naming the
// side, for flags that `train` would refuse.
std::map<std::string, std::string> settings_of(const VerifyOptions& options, Side side);

// What differs between the sides, before anything is run. Throws ConfigError for flags that `train`
// would refuse in a timed or profiled run, and unless --force is given for sides that cannot be
// compared.
std::vector<verify::Difference> check_sides(const VerifyOptions& options);

// Whether a side needs a GPU, where this host has none: said before the first run, not when the
// turn of that side comes. Throws ConfigError, naming the side; ranks on other hosts are not looked
// at, and a plan alone may name the device of another machine.
void check_device(const VerifyOptions& options, bool has_gpu);

// More ranks than the memory of this host can hold would stop all of it for minutes. Throws
// ConfigError; ranks on other hosts are not looked at.
void check_ranks(const VerifyOptions& options);

}  // namespace sidestream::launch
