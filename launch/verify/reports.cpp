#include "launch/verify/reports.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/shell_words.hpp"
#include "core/base/standard_output.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/profiled_sides.hpp"
#include "launch/verify/decision_log.hpp"
#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"
#include "profiling/verify/input_proof.hpp"
#include "profiling/verify/verification_report.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kWidthColumns = 100;  // of the file

std::string side_text(const VerifyOptions& options, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"--config", options.config.string()};
  words.insert(words.end(), options.common.begin(), options.common.end());
  words.insert(words.end(), flags.begin(), flags.end());
  return core::shell_words(words);
}

verify::Settings settings_of(const VerifyOptions& options, const std::string& command) {
  return {.command = command,
          .base_flags = side_text(options, options.base),
          .fresh_flags = side_text(options, options.fresh),
          .warm_up = options.warm_up,
          .force = options.force};
}

void add_profiles(const ProfileReading& read, verify::Verification& result) {
  result.profiles_missing = read.missing;
  if (read.sides) result.profiles = profiles_of(read.sides->base, read.sides->fresh);
}

// The proof is a verification of its own, with a line of its own in the log.
void add_proof(const VerifyOptions& options, const ProofRuns& proof, const fs::path& log,
               verify::Verification& result) {
  verify::Settings settings = result.settings;
  settings.fresh_flags = settings.base_flags + " --fix-batch on";
  const verify::Verification runs =
      verify::verify_runs(proof.sides.base, proof.sides.fresh, settings);
  result.proof = verify::input_proof(proof.finding, proof.bound_pct, runs);
  append_decision(log, options.output, runs, verify::decide(runs, {}), Subject::kProof);
}

std::string page_of(ExaminedSides* profiled, const Json& json, const std::string& title) {
  page::DocumentParts parts{.title = title, .verification = json, .trace_change = json.at("trace")};
  if (profiled != nullptr) add_sides(parts, &profiled->base, &profiled->fresh);
  return page::html_page(page::document_of(std::move(parts)));
}

verify::Verification judge(const VerifyOptions& options, const RunsOfSides& timed,
                           const std::string& command, const fs::path& log) {
  verify::Verification result =
      verify::verify_runs(timed.base, timed.fresh, settings_of(options, command));
  result.trials = read_decisions(log, options.output);
  std::vector<PlannedRun> examples = plan_runs(options);
  examples.resize(2);
  for (const PlannedRun& run : examples)
    result.commands.push_back(core::shell_words(start_command(options, run, "sidestream")));
  return result;
}

}  // namespace

int report_failure(const VerifyOptions& options, const OutputFolder& folder,
                   const RunFailure& failure, const ProgramCall& call) {
  core::print_remark(fmt::format("sidestream: {}\n", failure.what()));
  const verify::FailedVerification failed{.settings = settings_of(options, call.command),
                                          .version = call.version,
                                          .environment = environment_of_first(plan_runs(options)),
                                          .run = failure.run(),
                                          .reason = failure.reason(),
                                          .exit_code = failure.exit_code()};
  core::write_file_atomically(folder.file("report.json"), verify::failure_json(failed));
  core::write_file_atomically(folder.file("report.html"), verify::failure_html(failed));
  core::write_file_atomically(folder.file("report.md"), verify::failure_markdown(failed));
  core::write_file_atomically(folder.file("report.txt"), verify::failure_text(failed));
  append_rejection(decision_log_of(options), options.output, failed);
  fmt::print("reports: {}\n", folder.file("report.{html,json,md,txt}").string());
  return failure.exit_code();
}

int write_reports(const VerifyOptions& options, const OutputFolder& folder,
                  const VerificationRuns& runs, const std::string& command) {
  const fs::path log = decision_log_of(options);
  verify::Verification result = judge(options, runs.timed, command, log);
  add_profiles(runs.profiled, result);
  if (runs.proof) add_proof(options, *runs.proof, log, result);
  const verify::Decision decision =
      verify::decide(result, {.fail_if_slower_pct = options.fail_if_slower_pct});
  const std::string plain = verification_text(result, decision, {.width_columns = kWidthColumns});
  const std::string json = verification_json(result, decision);
  core::write_file_atomically(folder.file("report.json"), json);
  core::write_file_atomically(
      folder.file("report.html"),
      page_of(runs.profiled.sides.get(), Json::parse(json),
              fmt::format("Base against new: {}", verify::verdict_word(result))));
  core::write_file_atomically(folder.file("report.md"), verification_markdown(result, decision));
  core::write_file_atomically(folder.file("report.txt"), plain);
  append_decision(log, options.output, result, decision);
  const Terminal terminal = detect_terminal(1);
  const report::TextStyle style{.width_columns = terminal.text_width_columns(),
                                .color = terminal.color};
  fmt::print("\n{}\nreports: {}\n", verification_text(result, decision, style),
             folder.file("report.{html,json,md,txt}").string());
  return static_cast<int>(decision.code);
}

}  // namespace sidestream::launch
