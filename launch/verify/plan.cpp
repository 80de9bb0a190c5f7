#include "launch/verify/plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/processors.hpp"
#include "core/data/fingerprint.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/verify/file_settings.hpp"

extern char** environ;

namespace sidestream::launch {
namespace {

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// As coreutils 8.31 and newer do.
bool env_blocks_signals() {
  static const bool does = std::system("env --block-signal=USR1 true >/dev/null 2>&1") == 0;
  return does;
}

const char* name_of(Side side) { return side == Side::kBase ? "base" : "new"; }

std::vector<std::string> side_flags(const VerifyOptions& options, Side side) {
  std::vector<std::string> words = {"--config", options.config.string()};
  append(words, options.common);
  append(words, side == Side::kBase ? options.base : options.fresh);
  return words;
}

// What a run of a block is told besides its flags.
PlannedRun in_block(const VerifyOptions& options, PlannedRun run, const std::string& name) {
  run.folder = options.output / "runs" / name;
  run.steps = options.steps;
  const auto seed = options.seed + static_cast<std::uint64_t>(run.block) - 1;
  append(run.train_arguments, flags_over_file(options, run.train_arguments));
  append(run.train_arguments,
         {"--run-dir", run.folder.string(), "--steps", std::to_string(options.steps), "--seed",
          std::to_string(seed), "--log-every", "1", "--eval-every", std::to_string(options.steps),
          "--checkpoint-every", "0"});
  return run;
}

PlannedRun planned(const VerifyOptions& options, int block, Side side) {
  return in_block(
      options,
      {.block = block, .side = side, .folder = {}, .train_arguments = side_flags(options, side)},
      fmt::format("block_{:03}_{}", block, name_of(side)));
}

PlannedRun in_proof(const VerifyOptions& options, int block, Side side) {
  PlannedRun run{.purpose = RunPurpose::kProof,
                 .block = block,
                 .side = side,
                 .folder = {},
                 .train_arguments = side_flags(options, Side::kBase)};
  if (side == Side::kNew) append(run.train_arguments, {"--fix-batch", "on"});
  return in_block(options, std::move(run),
                  fmt::format("proof_{:03}_{}", block, side == Side::kBase ? "base" : "fixed"));
}

// Who goes first changes from block to block, so that a drift of the machine favours neither.
std::vector<PlannedRun> in_turns(const VerifyOptions& options, int blocks,
                                 PlannedRun (*make)(const VerifyOptions&, int, Side)) {
  std::vector<PlannedRun> runs;
  for (int block = 1; block <= blocks; ++block) {
    const bool base_first = block % 2 == 1;
    runs.push_back(make(options, block, base_first ? Side::kBase : Side::kNew));
    runs.push_back(make(options, block, base_first ? Side::kNew : Side::kBase));
  }
  return runs;
}

// The order of the buckets settles in step 2, and readers fill up. Three steps set things up, three
// more say what a step takes without the profiler, then it warms up. The step after the window ends
// in peace.
constexpr const char* kProfileWindow = "wait=6,warmup=1,active=3,repeat=1";
constexpr std::int64_t kProfiledRunSteps = 11;

PlannedRun profiled(const VerifyOptions& options, Side side) {
  PlannedRun run{.purpose = RunPurpose::kProfile,
                 .side = side,
                 .folder = options.output / "runs" / fmt::format("profile_{}", name_of(side)),
                 .steps = kProfiledRunSteps,
                 .train_arguments = side_flags(options, side)};
  // A target needs an evaluation; else there is none, which would take longer than the steps.
  const bool evaluates = is_set(options, run.train_arguments, "target-val-loss");
  append(run.train_arguments,
         {"--run-dir", run.folder.string(), "--steps", std::to_string(kProfiledRunSteps), "--seed",
          std::to_string(options.seed), "--log-every", "1", "--eval-every",
          std::to_string(evaluates ? kProfiledRunSteps : 0), "--checkpoint-every", "0"});
  const std::vector<std::vector<std::string>> wanted = {{"--profile", kProfileWindow},
                                                        {"--profile-shapes"},
                                                        {"--profile-flops"},
                                                        {"--sample-hz", "20"}};
  for (const auto& flag : wanted) {  // what the side asks for itself stays
    if (!names_flag(run.train_arguments, flag.front())) append(run.train_arguments, flag);
  }
  append(run.train_arguments, flags_over_file(options, run.train_arguments));
  return run;
}

// mpirun passes only its own variables to other hosts.
bool goes_to_other_hosts(const std::string& name) {
  for (const char* start : {"SIDESTREAM_", "NCCL_", "OMP_"}) {
    if (name.starts_with(start)) return true;
  }
  for (const char* whole :
       {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR"}) {
    if (name == whole) return true;
  }
  return false;
}

// Errors about the configuration name the side.
template <typename Function>
auto naming_side(const char* side, Function&& function) {
  try {
    return function();
  } catch (const core::ConfigError& error) {
    throw core::ConfigError(fmt::format("{} side: {}", side, error.what()));
  }
}

std::map<std::string, std::string> values_of(const PlannedRun& run, const char* side) {
  return naming_side(side, [&] {
    return verify::config_values(config_text(parse_train_options(run.train_arguments)), side);
  });
}

bool runs_elsewhere(const VerifyOptions& options) {
  return !options.hosts.empty() || std::getenv("SLURM_JOB_NODELIST") != nullptr;
}

// As far as their fingerprints tell. What cannot be read is said by the run that reads it.
bool hold_the_same_tokens(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(one) || !fs::is_directory(other)) return false;
  try {
    for (const data::Split split : {data::Split::kTrain, data::Split::kValidation}) {
      const bool there = data::has_split(one, split);
      if (there != data::has_split(other, split)) return false;
      if (there && data::fingerprint_of(data::TokenStream::open(one, split)) !=
                       data::fingerprint_of(data::TokenStream::open(other, split)))
        return false;
    }
    return true;
  } catch (const core::DataError&) {
    return false;
  }
}

}  // namespace

std::string describe(const PlannedRun& run) {
  switch (run.purpose) {
    case RunPurpose::kProfile:
      return fmt::format("profile, {}", name_of(run.side));
    case RunPurpose::kProof:
      return fmt::format("proof {}, {}", run.block,
                         run.side == Side::kBase ? "base" : "base on one batch");
    case RunPurpose::kTimed:
      break;
  }
  return fmt::format("block {}, {}", run.block, name_of(run.side));
}

std::vector<PlannedRun> plan_runs(const VerifyOptions& options) {
  return in_turns(options, options.blocks, planned);
}

std::vector<PlannedRun> plan_proof(const VerifyOptions& options) {
  return in_turns(options, kProofBlocks, in_proof);
}

std::vector<PlannedRun> plan_profiles(const VerifyOptions& options) {
  if (!options.profile) return {};
  return {profiled(options, Side::kBase), profiled(options, Side::kNew)};
}

std::vector<std::string> start_command(const VerifyOptions& options, const PlannedRun& run,
                                       const std::filesystem::path& program) {
  std::vector<std::string> words;
  if (options.ranks > 1 || !options.hosts.empty()) {
    // Binding is left to the ranks: mpirun would give a rank with all its threads a single core.
    words = {"mpirun", "-np", std::to_string(options.ranks), "--bind-to", "none"};
    if (!options.hosts.empty()) {
      append(words, {"--host", options.hosts});
    } else if (options.ranks > core::allowed_cores() && !std::getenv("SLURM_JOB_NODELIST")) {
      words.push_back("--oversubscribe");
    }
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry, name = text.substr(0, text.find('='));
      if (goes_to_other_hosts(name)) append(words, {"-x", name});
    }
    // A request that comes before a rank can note it waits, instead of killing it: as launch/run.
    if (env_blocks_signals()) append(words, {"env", "--block-signal=USR1,USR2"});
    // env would take a program with '=' in its path for a setting.
    if (program.string().find('=') != std::string::npos)
      append(words, {"/bin/sh", "-c", "exec \"$0\" \"$@\""});
  }
  append(words, {program.string(), "train"});
  append(words, run.train_arguments);
  return words;
}

void check_device(const VerifyOptions& options, bool has_gpu) {
  if (has_gpu || runs_elsewhere(options)) return;
  for (const Side side : {Side::kBase, Side::kNew}) {
    const std::vector<std::string> arguments = planned(options, 1, side).train_arguments;
    naming_side(name_of(side), [&] {
      const TrainOptions training = parse_train_options(arguments);
      if (training.device != Device::kCuda) return refuse_what_needs_a_gpu(training);
      if (!options.dry_run)  // which plans for another machine
        throw core::ConfigError(
            "--device cuda: no GPU was found on this machine; --hosts a:8,b:8 runs on others, "
            "--dry-run plans");
    });
  }
}

void check_ranks(const VerifyOptions& options) {
  constexpr std::int64_t kBytesOfARank = 200LL << 20;  // before it has a model, as in launch/run
  if (runs_elsewhere(options)) return;
  const std::int64_t most = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) / kBytesOfARank;
  if (options.ranks <= static_cast<int>(std::thread::hardware_concurrency()) ||
      options.ranks <= most)
    return;
  throw core::ConfigError(
      fmt::format("--np {}: the memory of this host holds {} ranks at most; --hosts a:8,b:8 starts "
                  "them on several",
                  options.ranks, most));
}

std::map<std::string, std::string> settings_of(const VerifyOptions& options, Side side) {
  auto values = values_of(planned(options, 1, side), name_of(side));
  values.erase("run-dir");
  return values;
}

std::vector<verify::Difference> check_sides(const VerifyOptions& options) {
  auto differences =
      verify::differences_of(settings_of(options, Side::kBase), settings_of(options, Side::kNew));
  for (verify::Difference& one : differences) {
    if (one.field == "data" && hold_the_same_tokens(one.base, one.fresh))
      one.kind = verify::DifferenceKind::kEnvironment;
  }
  for (const PlannedRun& run : plan_profiles(options))  // no fault of theirs is met after hours
    naming_side(name_of(run.side), [&] { return parse_train_options(run.train_arguments); });
  const std::string refused = verify::refusal_text(differences);
  if (!refused.empty() && !options.force)
    throw core::ConfigError(
        "the two sides cannot be compared: " + refused +
        ". Give both the same (--common holds flags of both sides), or --force to compare anyway");
  return differences;
}

}  // namespace sidestream::launch
