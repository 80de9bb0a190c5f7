#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "comm/mpi_environment.hpp"
#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "launch/commands/commands.hpp"
#include "launch/process/stop_request.hpp"
#include "launch/verify/decision_log.hpp"
#include "launch/verify/output_folder.hpp"
#include "launch/verify/run_loop.hpp"
#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"
#include "profiling/verify/verification_report.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kWidthColumns = 100;

std::string side_text(const VerifyOptions& options, const std::vector<std::string>& flags) {
  return fmt::format("--config {}{}{}{}{}", options.config.string(),
                     options.common.empty() ? "" : " ", fmt::join(options.common, " "),
                     flags.empty() ? "" : " ", fmt::join(flags, " "));
}

int print_commands(const VerifyOptions& options) {
  for (const PlannedRun& run : plan_runs(options))
    fmt::print("{}\n", fmt::join(start_command(options, run, "sidestream"), " "));
  return 0;
}

void refuse_ranks() {
  if (comm::LauncherEnvironment::read().size > 1)
    throw core::ConfigError(
        "`sidestream verify` starts mpirun itself: call it once, without mpirun, with --np N");
}

std::string page_of(const RunsOfSides& sides, const std::string& json, const std::string& title) {
  return page::html_page(page::document_of({.title = title,
                                            .verification = nlohmann::ordered_json::parse(json),
                                            .curves = page::loss_curves(sides.base, sides.fresh)}));
}

int write_reports(const VerifyOptions& options, const OutputFolder& folder,
                  const RunsOfSides& sides, const std::string& command) {
  const verify::Verification result =
      verify::verify_runs(sides.base, sides.fresh,
                          {.command = command,
                           .base_flags = side_text(options, options.base),
                           .fresh_flags = side_text(options, options.fresh),
                           .warm_up = options.warm_up});
  const verify::Decision decision =
      verify::decide(result, {.fail_if_slower_pct = options.fail_if_slower_pct});
  const std::string plain = verification_text(result, decision, {.width_columns = kWidthColumns});
  const std::string json = verification_json(result, decision);
  core::write_file_atomically(folder.file("report.json"), json);
  core::write_file_atomically(folder.file("report.html"),
                              page_of(sides, json, verify::verdict_word(result)));
  core::write_file_atomically(folder.file("report.md"), verification_markdown(result, decision));
  core::write_file_atomically(folder.file("report.txt"), plain);
  append_decision(options.log.empty() ? folder.file("decisions.jsonl") : options.log,
                  options.output, result, decision);
  const report::TextStyle style{.width_columns = kWidthColumns, .color = detect_terminal(1).color};
  fmt::print("\n{}\nreports: {}\n", verification_text(result, decision, style),
             folder.file("report.{html,json,md,txt}").string());
  return static_cast<int>(decision.code);
}

}  // namespace

int run_verify(const CommandCall& call) {
  refuse_ranks();
  const VerifyOptions options = parse_verify_options(call.arguments);
  check_sides(options);
  if (options.dry_run) return print_commands(options);
  const std::string command = fmt::format("{}", fmt::join(call.argv, call.argv + call.argc, " "));
  const StopRequest stop;
  const OutputFolder folder(options);
  RunProgress progress(2 * options.blocks, options.steps, detect_terminal(1));
  try {
    const auto sides = make_runs(options, plan_runs(options), stop, progress);
    if (sides) return write_reports(options, folder, *sides, command);
  } catch (const RunFailure& failure) {
    fmt::print(stderr, "sidestream: {}\n", failure.what());
    return failure.exit_code();
  }
  progress.say("stopped; the same command goes on, and repeats no finished run");
  return static_cast<int>(core::ExitCode::kPreempted);
}

}  // namespace sidestream::launch
