#include "launch/verify/decision_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {
namespace {

// The same for "report" and "report/".
std::string name_of(const std::filesystem::path& reports) {
  const std::filesystem::path folder = std::filesystem::absolute(reports).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).string();
}

using Json = nlohmann::ordered_json;

Json line_of(const std::filesystem::path& reports, const verify::Settings& settings) {
  return {{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"command", settings.command},
          {"reports", name_of(reports)},
          {"base", settings.base_flags},
          {"new", settings.fresh_flags}};
}

void append(const std::filesystem::path& log, const Json& line) {
  const core::UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw core::Error(core::system_error_text("cannot write", log, errno));
  core::write_all(file.get(), line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
                  log);
}

}  // namespace

void append_decision(const std::filesystem::path& log, const std::filesystem::path& reports,
                     const verify::Verification& one, const verify::Decision& decision) {
  Json line = line_of(reports, one.settings);
  line.update({{"version", one.version},
               {"environment", one.environment},
               {"verdict", verify::verdict_sentence(one)},
               {"convergence", one.convergence.reason},
               {"accepted", decision.accepted},
               {"reason", decision.reason}});
  append(log, line);
}

void append_rejection(const std::filesystem::path& log, const std::filesystem::path& reports,
                      const verify::Settings& settings, const std::string& reason) {
  Json line = line_of(reports, settings);
  line.update({{"verdict", "none: a run did not end"}, {"accepted", false}, {"reason", reason}});
  append(log, line);
}

std::vector<verify::Trial> read_decisions(const std::filesystem::path& log,
                                          const std::filesystem::path& reports) {
  std::vector<std::pair<std::string, verify::Trial>> by_folder;
  std::ifstream input(log);
  const std::string own = name_of(reports);  // its proof lies inside
  for (std::string line; std::getline(input, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("verdict")) continue;
    const std::string folder = json.value("reports", "");
    if (folder == own || folder.starts_with(own + "/")) continue;
    std::erase_if(by_folder, [&](const auto& one) { return one.first == folder; });
    by_folder.emplace_back(folder, verify::Trial{.time = json.value("time", ""),
                                                 .base_flags = json.value("base", ""),
                                                 .fresh_flags = json.value("new", ""),
                                                 .verdict = json.value("verdict", ""),
                                                 .accepted = json.value("accepted", false),
                                                 .reason = json.value("reason", "")});
  }
  std::vector<verify::Trial> trials;
  for (auto& [folder, trial] : by_folder) trials.push_back(std::move(trial));
  return trials;
}

}  // namespace sidestream::launch
