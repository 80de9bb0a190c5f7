#include "launch/verify/reports.hpp"

#include <fmt/format.h>

#include <memory>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "launch/reporting/terminal.hpp"
#include "launch/trace/examined_run.hpp"
#include "launch/trace/profiled_sides.hpp"
#include "launch/verify/decision_log.hpp"
#include "launch/verify/shell_words.hpp"
#include "profiling/page/document.hpp"
#include "profiling/page/html.hpp"
#include "profiling/verify/verification_report.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kWidthColumns = 100;

std::string side_text(const VerifyOptions& options, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"--config", options.config.string()};
  words.insert(words.end(), options.common.begin(), options.common.end());
  words.insert(words.end(), flags.begin(), flags.end());
  return shell_words(words);
}

// The traces of both profiled runs.
struct ProfiledSides {
  ExaminedRun base, fresh;
};

std::unique_ptr<ProfiledSides> read_traces(const std::vector<PlannedRun>& plan) {
  auto sides = std::unique_ptr<ProfiledSides>(
      new ProfiledSides{{{plan.front().folder}, {}}, {{plan.back().folder}, {}}});
  for (const auto& [run, traces] :
       {std::pair(&plan.front(), &sides->base), std::pair(&plan.back(), &sides->fresh)}) {
    fs::create_directories(run->folder / "report");
    core::write_file_atomically(run->folder / "report" / "report.json", traces->report_text());
  }
  return sides;
}

// Null, with the reason in the verification, when there is nothing to read.
std::unique_ptr<ProfiledSides> add_profiles(const VerifyOptions& options,
                                            const ProfiledRuns& profiled,
                                            verify::Verification& result) {
  result.profiles_missing = profiled.missing;
  if (!profiled.missing.empty()) return nullptr;
  try {
    auto sides = read_traces(plan_profiles(options));
    result.profiles = profiles_of(sides->base, sides->fresh);
    return sides;
  } catch (const core::Error& error) {
    result.profiles_missing = std::string("their traces cannot be read: ") + error.what();
    return nullptr;
  }
}

std::string page_of(ProfiledSides* profiled, const Json& json, const std::string& title) {
  page::DocumentParts parts{.title = title,
                            .verification = json,
                            .trace_change = json.at("trace")};
  if (profiled != nullptr) add_sides(parts, &profiled->base, &profiled->fresh);
  return page::html_page(page::document_of(std::move(parts)));
}

verify::Verification judge(const VerifyOptions& options, const RunsOfSides& timed,
                           const std::string& command, const fs::path& log) {
  verify::Verification result =
      verify::verify_runs(timed.base, timed.fresh,
                          {.command = command,
                           .base_flags = side_text(options, options.base),
                           .fresh_flags = side_text(options, options.fresh),
                           .warm_up = options.warm_up});
  result.trials = read_decisions(log, options.output);
  std::vector<PlannedRun> examples = plan_runs(options);
  examples.resize(2);
  for (const PlannedRun& run : examples)
    result.commands.push_back(shell_words(start_command(options, run, "sidestream")));
  return result;
}

}  // namespace

int write_reports(const VerifyOptions& options, const OutputFolder& folder,
                  const VerificationRuns& runs, const std::string& command) {
  const fs::path log = options.log.empty() ? folder.file("decisions.jsonl") : options.log;
  verify::Verification result = judge(options, runs.timed, command, log);
  const auto profiled = add_profiles(options, runs.profiled, result);
  const verify::Decision decision =
      verify::decide(result, {.fail_if_slower_pct = options.fail_if_slower_pct});
  const std::string plain = verification_text(result, decision, {.width_columns = kWidthColumns});
  const std::string json = verification_json(result, decision);
  core::write_file_atomically(folder.file("report.json"), json);
  core::write_file_atomically(
      folder.file("report.html"),
      page_of(profiled.get(), Json::parse(json),
              fmt::format("Base against new: {}", verify::verdict_word(result))));
  core::write_file_atomically(folder.file("report.md"), verification_markdown(result, decision));
  core::write_file_atomically(folder.file("report.txt"), plain);
  append_decision(log, options.output, result, decision);
  const report::TextStyle style{.width_columns = kWidthColumns, .color = detect_terminal(1).color};
  fmt::print("\n{}\nreports: {}\n", verification_text(result, decision, style),
             folder.file("report.{html,json,md,txt}").string());
  return static_cast<int>(decision.code);
}

}  // namespace sidestream::launch
