#include "launch/doctor/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launch/doctor/over_ranks.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::launch::doctor {
namespace {

constexpr Level kLevels[] = {Level::kOk, Level::kNote, Level::kWarning, Level::kError};
constexpr std::size_t kNameColumns = 16;
constexpr std::size_t kLevelColumns = 8;
constexpr std::size_t kIndent = kLevelColumns + kNameColumns + 2;

std::size_t count_of(const std::vector<Finding>& findings, Level level) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [level](const Finding& finding) { return finding.level == level; }));
}

const char* color_of(Level level) {
  switch (level) {
    case Level::kOk:
      return "\033[32m";
    case Level::kNote:
      return "\033[36m";
    case Level::kWarning:
      return "\033[33m";
    case Level::kError:
      return "\033[31m";
  }
  return "";
}

// Colours go in after the lines are broken: they take no columns.
std::string painted(std::string line, Level level, const TextStyle& style) {
  if (!style.color) return line;
  const std::size_t end = name_of(level).size();
  return color_of(level) + line.substr(0, end) + "\033[0m" + line.substr(end);
}

std::string detail(std::string_view word, const std::string& text, const TextStyle& style) {
  const std::string line = std::string(kIndent, ' ') + fmt::format("{}: {}", word, text);
  return report::wrapped(line, style.width_columns, kIndent + 2);
}

std::string lines_of(const Finding& finding, const TextStyle& style) {
  const std::string place = finding.where.empty() ? "" : " [" + finding.where + "]";
  const std::string line = fmt::format("{:<{}}{:<{}}  {}{}", name_of(finding.level), kLevelColumns,
                                       finding.name, kNameColumns, finding.found, place);
  std::string text =
      painted(report::wrapped(line, style.width_columns, kIndent), finding.level, style);
  if (!finding.expected.empty()) text += detail("expected", finding.expected, style);
  if (!finding.remedy.empty()) text += detail("remedy", finding.remedy, style);
  return text;
}

std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string title(const JobFacts& job) {
  const std::size_t hosts = first_ranks(job).size();
  if (hosts > 1) return fmt::format("{} ranks on {} hosts\n\n", job.ranks.size(), hosts);
  return fmt::format("{} on {}\n\n", counted(job.ranks.size(), "rank"), job.topology.hosts[0]);
}

std::string verdict(const std::vector<Finding>& findings) {
  return fmt::format(
      "{}: {} ok, {}, {}, {}\n",
      worst_of(findings) == Level::kError ? "Training cannot start" : "Training can start",
      count_of(findings, Level::kOk), counted(count_of(findings, Level::kNote), "note"),
      counted(count_of(findings, Level::kWarning), "warning"),
      counted(count_of(findings, Level::kError), "error"));
}

}  // namespace

std::string text_of(const JobFacts& job, const std::vector<Finding>& findings,
                    const TextStyle& style) {
  std::string text = title(job);
  for (const Finding& finding : findings) text += lines_of(finding, style);
  return text + "\n" + verdict(findings);
}

std::string json_of(const JobFacts& job, const std::vector<Finding>& findings) {
  using Json = nlohmann::ordered_json;
  Json hosts = Json::array(), counts = Json::object(), list = Json::array();
  for (const std::size_t rank : first_ranks(job)) hosts.push_back(job.topology.hosts[rank]);
  for (const Level level : kLevels) counts[std::string(name_of(level))] = count_of(findings, level);
  for (const Finding& finding : findings)
    list.push_back({{"name", finding.name},
                    {"level", name_of(finding.level)},
                    {"found", finding.found},
                    {"expected", finding.expected},
                    {"remedy", finding.remedy},
                    {"where", finding.where}});
  const Json report = {{"schema", 1},
                       {"can_train", worst_of(findings) != Level::kError},
                       {"world_size", job.ranks.size()},
                       {"hosts", hosts},
                       {"counts", counts},
                       {"findings", list}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sidestream::launch::doctor
