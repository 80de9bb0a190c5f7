#include "profiling/verify/failed_verification.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace sidestream::verify {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVerdict = "none: a run did not end";

std::string lines_of(const FailedRun& run) {
  std::string text;
  for (const std::string& line : run.last_lines) text += line + "\n";
  return text.empty() ? "(nothing)\n" : text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace

std::string failure_json(const FailedVerification& one) {
  const Json json = {
      {"schema", 1},
      {"kind", "verification"},
      {"command", one.settings.command},
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
      "printed; all of it is in `{}`:\n\n```\n{}```\n\n## How it was made\n\n```\n{}\n```\n",
      kVerdict, one.settings.base_flags, one.settings.fresh_flags, one.reason, one.run.name,
      one.run.exit_code, one.run.command, one.run.log, lines_of(one.run), one.settings.command);
}

std::string failure_text(const FailedVerification& one) {
  return fmt::format(
      "base: {}\nnew:  {}\n\nVerdict: {}\nDecision: not accepted ({})\n\nThe run that failed: {}, "
      "exit code {}\n{}\n\nThe last lines that it printed; all of it is in {}\n{}\nMade by: {}\n",
      one.settings.base_flags, one.settings.fresh_flags, kVerdict, one.reason, one.run.name,
      one.run.exit_code, one.run.command, one.run.log, lines_of(one.run), one.settings.command);
}

std::string failure_html(const FailedVerification& one) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Base against new: {0}"
      "</title>\n<h1>Base against new: {0}</h1>\n<pre>{1}</pre>\n</html>\n",
      kVerdict, escaped(failure_text(one)));
}

}  // namespace sidestream::verify
