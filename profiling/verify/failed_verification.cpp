#include "profiling/verify/failed_verification.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "profiling/report/escaped_html.hpp"
#include "profiling/report/wrap.hpp"
#include "profiling/verify/how_made.hpp"

namespace sidestream::verify {
namespace {

using Json = nlohmann::ordered_json;

std::string lines_of(const FailedRun& run) {
  std::string text;
  for (const std::string& line : run.last_lines) text += line + "\n";
  return text.empty() ? "(nothing)\n" : text;
}

HowMade how_made(const FailedVerification& one) {
  return {
      .commands = {one.settings.command}, .version = one.version, .environment = one.environment};
}

}  // namespace

std::string failure_json(const FailedVerification& one) {
  const Json json = {
      {"schema", 1},
      {"kind", "verification"},
      {"command", one.settings.command},
      {"version", one.version},
      {"environment", one.environment},
      {"base", one.settings.base_flags},
      {"new", one.settings.fresh_flags},
      {"step_time", {{"verdict", "none"}}},
      {"decision", {{"accepted", false}, {"reason", one.reason}, {"exit_code", one.exit_code}}},
      {"failure",
       {{"run", one.run.name},
        {"command", one.run.command},
        {"exit_code", one.run.exit_code},
        {"last_lines", one.run.last_lines},
        {"log", one.run.log}}}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string failure_markdown(const FailedVerification& one) {
  return fmt::format(
      "# Base against new: {}\n\n- base: `{}`\n- new: `{}`\n\nDecision: not accepted ({}).\n\n"
      "## The run that failed\n\n{}, exit code {}:\n\n```\n{}\n```\n\nThe last lines that it "
      "printed; all of it is in `{}`:\n\n```\n{}```\n\n{}",
      kNoVerdict, one.settings.base_flags, one.settings.fresh_flags, one.reason, one.run.name,
      one.run.exit_code, one.run.command, one.run.log, lines_of(one.run),
      markdown_of(how_made(one)));
}

std::string failure_text(const FailedVerification& one) {
  constexpr std::size_t kWidthColumns = 100;
  std::string text;
  const auto add = [&](const std::string& line, std::size_t indent) {
    text += report::wrapped(line, kWidthColumns, indent);
  };
  add("base: " + one.settings.base_flags, 6);
  add("new:  " + one.settings.fresh_flags, 6);
  text += "\n";
  add(fmt::format("Verdict: {}", kNoVerdict), 2);
  add(fmt::format("Decision: not accepted ({})", one.reason), 2);
  text += "\n";
  add(fmt::format("The run that failed: {}, exit code {}", one.run.name, one.run.exit_code), 2);
  add(one.run.command, 2);
  text += "\n";
  add("The last lines that it printed; all of it is in " + one.run.log, 2);
  std::istringstream printed(lines_of(one.run));
  for (std::string line; std::getline(printed, line);) add(line, 2);
  return text + "\n" + text_of(how_made(one), kWidthColumns);
}

std::string failure_html(const FailedVerification& one) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Base against new: {0}"
      "</title>\n<h1>Base against new: {0}</h1>\n<pre>{1}</pre>\n</html>\n",
      kNoVerdict, report::escaped_html(failure_text(one)));
}

}  // namespace sidestream::verify
