#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "comm/mpi_environment.hpp"
#include "core/base/error.hpp"
#include "core/base/printable.hpp"
#include "core/base/shell_words.hpp"
#include "launch/assembly/expected_time.hpp"
#include "launch/commands/commands.hpp"
#include "launch/doctor/system_files.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/build_summary.hpp"
#include "launch/process/stop_request.hpp"
#include "launch/verify/file_settings.hpp"
#include "launch/verify/output_folder.hpp"
#include "launch/verify/reports.hpp"
#include "launch/verify/run_loop.hpp"

namespace sidestream::launch {
namespace {

std::string time_text(double seconds) {
  constexpr double kLong = 100;
  return seconds < kLong ? fmt::format("about {:.0f} s", seconds)
                         : fmt::format("about {:.0f} min", seconds / 60);
}

// Empty when the time of a run is not known.
std::optional<double> expected_seconds_of(const VerifyOptions& options,
                                          const std::vector<PlannedRun>& plan) {
  double seconds = 0;
  for (const PlannedRun& run : plan) {
    const auto one = expected_seconds(parse_train_options(run.train_arguments), options.ranks);
    if (!one) return std::nullopt;
    seconds += *one;
  }
  return seconds;
}

int print_plan(const VerifyOptions& options) {
  std::vector<PlannedRun> plan = plan_runs(options);
  const std::size_t timed = plan.size();
  const std::vector<PlannedRun> profiles = plan_profiles(options);
  plan.insert(plan.end(), profiles.begin(), profiles.end());
  for (const PlannedRun& run : plan)
    fmt::print("{}\n", core::shell_words(start_command(options, run, "sidestream")));
  const auto seconds = expected_seconds_of(options, plan);
  const std::string proof =
      options.profile && options.prove
          ? fmt::format("; {} more should the first advice be that the base waits for input",
                        plan_proof(options).size())
          : "";
  fmt::print("{} timed runs of {} steps, {} profiled{}: {} (--dry-run: none was started){}\n",
             timed, options.steps, profiles.size(),
             profiles.empty() ? "" : fmt::format(" of {} steps", profiles.front().steps),
             seconds ? time_text(*seconds)
                     : "how long is not known before `sidestream bench ceilings` has run here",
             proof);
  return 0;
}

// An example's data is made by the quickstart. Step times can be compared before that: the flag is
// set for both sides, and stands in every report.
void fill_in_data(VerifyOptions& options) {
  for (const auto* flags : {&options.common, &options.base, &options.fresh}) {
    if (names_flag(*flags, "--data")) return;
  }
  const std::string source =
      parse_train_options(plan_runs(options).front().train_arguments).data.source;
  if (source == "synthetic" || std::filesystem::exists(source)) return;
  fmt::print(
      "{} of {} is not there (launch/quickstart or `sidestream prepare` make such a folder): both "
      "sides get --data synthetic, and their losses say little\n",
      source, options.config.string());
  options.common.insert(options.common.end(), {"--data", "synthetic"});
}

void refuse_ranks() {
  if (comm::LauncherEnvironment::read().size > 1)
    throw core::ConfigError(
        "`sidestream verify` starts mpirun itself: call it once, without mpirun, with --np N");
}

// Nothing when a stop was asked for.
std::optional<VerificationRuns> make_all_runs(const VerifyOptions& options, RunProgress& progress) {
  const StopRequest stop;
  auto timed = make_runs(options, plan_runs(options), stop, progress);
  if (!timed) return std::nullopt;
  const ProfiledRuns profiled = make_profiles(options, plan_profiles(options), stop, progress);
  if (profiled.stopped) return std::nullopt;
  VerificationRuns runs{.timed = std::move(*timed), .profiled = read_profiles(options, profiled)};
  if (!runs.profiled.sides) return runs;
  ProofOutcome proof = make_proof(options, runs.profiled.sides->base, stop, progress);
  if (proof.stopped) return std::nullopt;
  runs.proof = std::move(proof.proof);
  return runs;
}

}  // namespace

int run_verify(const CommandCall& call) {
  refuse_ranks();
  VerifyOptions options = parse_verify_options(call.arguments);
  read_file_settings(options);
  for (const std::string& remark : remarks_on_file(options))
    fmt::print("{}\n", core::printable_lines(remark));
  fill_in_data(options);
  if (options.output.empty()) options.output = default_output(options);
  check_ranks(options);
  if (check_sides(options).empty()) {
    fmt::print(
        "--base and --new come to the same settings: their comparison shows how far equal runs "
        "scatter here, and no more\n");
  }
  const doctor::GpuFacts gpus = doctor::read_gpus();
  check_device(options, gpus.on_bus > 0 || !gpus.driver.empty());
  if (options.dry_run) return print_plan(options);
  const std::string command = core::shell_words({call.argv, call.argv + call.argc});
  if (!options.log.empty()) check_log(options.log);
  const OutputFolder folder(options);
  check_log(decision_log_of(options));
  RunProgress progress(2 * options.blocks + (options.profile ? 2 : 0), detect_terminal(1));
  try {
    const auto runs = make_all_runs(options, progress);
    if (runs) return write_reports(options, folder, *runs, command);
  } catch (const RunFailure& failure) {
    return report_failure(options, folder, failure,
                          {.command = command, .version = std::string(version_text())});
  }
  progress.say("stopped; the same command goes on, and repeats no finished run");
  return static_cast<int>(core::ExitCode::kPreempted);
}

}  // namespace sidestream::launch
