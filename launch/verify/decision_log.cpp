#include "launch/verify/decision_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/shallow_json.hpp"
#include "launch/reporting/torn_line.hpp"
#include "launch/verify/output_folder.hpp"

namespace sidestream::launch {
namespace {

using Json = nlohmann::ordered_json;

Json line_of(const std::filesystem::path& reports, const verify::Settings& settings,
             Subject subject) {
  return {{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"command", settings.command},
          {"reports", absolute_folder(reports).string()},
          {"base", settings.base_flags},
          {"new", settings.fresh_flags},
          {"proof", subject == Subject::kProof}};
}

// The newest decision on the same subject, without its time.
nlohmann::json newest_like(const std::filesystem::path& log, const nlohmann::json& line) {
  nlohmann::json newest;
  std::ifstream input(log);
  for (std::string text; std::getline(input, text);) {
    nlohmann::json json = core::shallow_json_or_null(text);
    if (!json.is_object() || json.value("reports", nlohmann::json()) != line.at("reports") ||
        json.value("proof", nlohmann::json(false)) != line.at("proof"))
      continue;
    json.erase("time");
    newest = std::move(json);
  }
  return newest;
}

struct Decided {
  std::string folder;
  bool is_proof = false;
  verify::Trial trial;
};

// Nothing of a line that is no decision: people and other programs write into logs, too.
std::optional<Decided> decided_in(const std::string& line) {
  const nlohmann::json json = core::shallow_json_or_null(line);
  if (!json.is_object() || !json.contains("verdict")) return std::nullopt;
  try {
    return Decided{.folder = json.value("reports", ""),
                   .is_proof = json.value("proof", false),
                   .trial = {.time = json.value("time", ""),
                             .base_flags = json.value("base", ""),
                             .fresh_flags = json.value("new", ""),
                             .verdict = json.value("verdict", ""),
                             .accepted = json.value("accepted", false),
                             .reason = json.value("reason", "")}};
  } catch (const nlohmann::json::type_error&) {
    return std::nullopt;
  }
}

// A finished verification that is asked for once more says the same: that is no second decision.
void append(const std::filesystem::path& log, const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  nlohmann::json timeless = nlohmann::json::parse(text);
  timeless.erase("time");
  if (newest_like(log, timeless) == timeless) return;
  const core::UniqueFd file(open(log.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw core::Error(core::system_error_text("cannot write", log, errno));
  core::write_all(file.get(), ends_with_a_line(file.get()) ? text : "\n" + text, log);
}

}  // namespace

void append_decision(const std::filesystem::path& log, const std::filesystem::path& reports,
                     const verify::Verification& one, const verify::Decision& decision,
                     Subject subject) {
  Json line = line_of(reports, one.settings, subject);
  line.update({{"version", one.version},
               {"environment", one.environment},
               {"verdict", verify::verdict_sentence(one)},
               {"convergence", one.convergence.reason},
               {"accepted", decision.accepted},
               {"reason", decision.reason}});
  append(log, line);
}

void append_rejection(const std::filesystem::path& log, const std::filesystem::path& reports,
                      const verify::FailedVerification& one) {
  Json line = line_of(reports, one.settings, Subject::kVerification);
  line.update({{"version", one.version},
               {"environment", one.environment},
               {"verdict", verify::kNoVerdict},
               {"accepted", false},
               {"reason", one.reason}});
  append(log, line);
}

std::vector<verify::Trial> read_decisions(const std::filesystem::path& log,
                                          const std::filesystem::path& reports) {
  using Key = std::pair<std::string, bool>;  // folder, whether it is a proof
  std::vector<std::pair<Key, verify::Trial>> by_folder;
  std::ifstream input(log);
  const std::string own =
      absolute_folder(reports).string();  // logs may name a proof as a folder inside
  for (std::string line; std::getline(input, line);) {
    std::optional<Decided> decided = decided_in(line);
    if (!decided || decided->folder == own || decided->folder.starts_with(own + "/")) continue;
    const Key key{decided->folder, decided->is_proof};
    std::erase_if(by_folder, [&](const auto& one) { return one.first == key; });
    by_folder.emplace_back(key, std::move(decided->trial));
  }
  std::vector<verify::Trial> trials;
  for (auto& [key, trial] : by_folder) trials.push_back(std::move(trial));
  return trials;
}

}  // namespace sidestream::launch
