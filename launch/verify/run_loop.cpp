#include "launch/verify/run_loop.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/shell_words.hpp"
#include "launch/verify/child_process.hpp"
#include "launch/verify/machine_watch.hpp"
#include "launch/verify/output_folder.hpp"
#include "profiling/verify/verification.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// Ranks write plain lines to a file, and root is told apart from a mistake, as launch/run does.
void prepare_environment() {
  unsetenv("SIDESTREAM_TERMINAL_COLUMNS");
  if (getuid() != 0) return;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

std::vector<std::string> last_lines(const fs::path& file) {
  constexpr std::size_t kLines = 20;
  std::ifstream input(file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(input, line);) {
    lines.push_back(line);
    if (lines.size() > kLines) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text.empty() ? "  (nothing)\n" : text;
}

// A change that makes the loss no number is not a broken verification: it learns worse.
[[noreturn]] void fail(const VerifyOptions& options, const PlannedRun& run, int exit_code) {
  verify::FailedRun failed{.name = describe(run),
                           .command = core::shell_words(start_command(options, run, "sidestream")),
                           .exit_code = exit_code,
                           .last_lines = last_lines(output_file(run)),
                           .log = output_file(run).string()};
  const bool diverged =
      run.side == Side::kNew && exit_code == static_cast<int>(core::ExitCode::kNumerics);
  throw RunFailure(fmt::format("{}the run of {} failed with exit code {}",
                               diverged ? "the new side learns worse, to no finite number: " : "",
                               describe(run), exit_code),
                   fmt::format("The last lines that it printed:\n{}All of it is in {}",
                               indented(failed.last_lines), failed.log),
                   failed, diverged ? static_cast<int>(verify::GateCode::kDiverged) : exit_code);
}

// Ranks note a request from before they say what they are; an mpirun that has none yet loses it, or
// dies of it.
bool notes_requests(const PlannedRun& run) { return fs::exists(run.folder / "run.json"); }

// The exit code, or nothing when a stop was asked for that came in time.
std::optional<int> run_once(const VerifyOptions& options, const PlannedRun& run,
                            const StopRequest& stop, RunProgress& progress, MachineWatch& watch) {
  constexpr std::chrono::milliseconds kPoll{100};
  fs::remove_all(run.folder);  // what an interrupted run has left
  ChildProcess child(start_command(options, run, fs::read_symlink("/proc/self/exe")),
                     output_file(run));
  bool asked = false, told = false;
  while (!child.exit_code()) {
    if (stop.requested() && !asked) {
      asked = true;
      progress.say("stopping at the end of this step; once more stops at once");
    }
    if (asked && !told && notes_requests(run)) {
      child.send(SIGUSR1);
      told = true;
    }
    if (!asked) progress.look(run);
    watch.look();
    std::this_thread::sleep_for(kPoll);
  }
  return asked && child.exit_code() != 0 ? std::nullopt : child.exit_code();
}

// Weights are of no use here, and large.
verify::RecordedRun read_and_trim(const PlannedRun& run) {
  fs::remove_all(run.folder / "checkpoints");
  return verify::read_recorded_run(run.folder);
}

double step_ms(const verify::RecordedRun& run, int warm_up) {
  const auto typical = verify::typical_step(run, warm_up);
  return typical ? typical->step_ms : 0;
}

bool has_lost_figures(const verify::RecordedRun& run, int warm_up) {
  return step_ms(run, warm_up) == 0 ||
         (run.last_step && !run.steps.empty() && run.steps.back().step < *run.last_step);
}

// Nothing when a stop was asked for. Throws RunFailure.
std::optional<verify::RecordedRun> make_run(const VerifyOptions& options, const PlannedRun& run,
                                            const StopRequest& stop, RunProgress& progress,
                                            MachineWatch& watch) {
  const int warm_up = run.purpose == RunPurpose::kProfile ? 0 : options.warm_up;
  if (is_finished(run)) {
    verify::RecordedRun recorded = read_and_trim(run);
    if (!has_lost_figures(recorded, warm_up)) {
      progress.kept(run, step_ms(recorded, warm_up));
      return recorded;
    }
    progress.say(describe(run) + ": finished before, but " +
                 (run.folder / "metrics.jsonl").string() +
                 " lacks its last steps: it is made again");
  }
  if (stop.requested()) return std::nullopt;
  progress.started(run);
  const std::optional<int> code = run_once(options, run, stop, progress, watch);
  const verify::MachineState measured = watch.take();
  if (!code) return std::nullopt;
  if (*code != 0) fail(options, run, *code);
  if (measured.any()) verify::write_machine_state(measured, run.folder / "machine.json");
  verify::RecordedRun recorded = read_and_trim(run);
  progress.finished(run, step_ms(recorded, warm_up));
  return recorded;
}

// Without its full stop; a dot inside a path or a number ends nothing.
std::string first_sentence(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const std::size_t end = line.find(". ");
  if (end != std::string::npos) return line.substr(0, end);
  return line.ends_with('.') ? line.substr(0, line.size() - 1) : line;
}

}  // namespace

std::optional<RunsOfSides> make_runs(const VerifyOptions& options,
                                     const std::vector<PlannedRun>& plan, const StopRequest& stop,
                                     RunProgress& progress) {
  prepare_environment();
  RunsOfSides sides;
  MachineWatch watch;
  for (const PlannedRun& run : plan) {
    std::optional<verify::RecordedRun> recorded = make_run(options, run, stop, progress, watch);
    if (!recorded) return std::nullopt;
    (run.side == Side::kBase ? sides.base : sides.fresh).push_back(std::move(*recorded));
  }
  return sides;
}

ProfiledRuns make_profiles(const VerifyOptions& options, const std::vector<PlannedRun>& plan,
                           const StopRequest& stop, RunProgress& progress) {
  if (plan.empty()) return {.missing = "--profile off"};
  prepare_environment();
  try {
    MachineWatch watch;
    for (const PlannedRun& run : plan) {
      if (!make_run(options, run, stop, progress, watch)) return {.stopped = true};
    }
  } catch (const core::Error& error) {
    progress.say(error.what());
    progress.say("the verdict does not need this run: it is given without timelines and advice");
    return {.missing = first_sentence(error.what())};
  }
  return {};
}

}  // namespace sidestream::launch
