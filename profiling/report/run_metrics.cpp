#include "profiling/report/run_metrics.hpp"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "profiling/report/run_directory.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void take(const Json& line, const char* key, std::vector<double>& values) {
  const auto found = line.find(key);
  if (found != line.end() && found->is_number()) values.push_back(found->get<double>());
}

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return statistics::upper_median(std::move(values));
}

void read_lines(const fs::path& file, RunMetrics& metrics) {
  std::vector<double> tokens, mfu, palm;
  std::ifstream lines(file);
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    take(line, "tokens_per_s", tokens);
    take(line, "mfu", mfu);
    if (line.contains("mfu") && line["mfu"].is_number() && line.contains("step") &&
        line["step"].is_number_integer())
      metrics.mfu_of_steps[line["step"].get<std::int64_t>()] = line["mfu"].get<double>();
    take(line, "mfu_palm", palm);
  }
  metrics.tokens_per_s = median_of(std::move(tokens));
  metrics.mfu = median_of(std::move(mfu));
  metrics.mfu_palm = median_of(std::move(palm));
}

struct PartName {
  const char* key;
  const char* name;
};
constexpr std::array<PartName, 9> kParts = {{{"productive_s", "productive"},
                                             {"replayed_s", "trained again"},
                                             {"startup_s", "start-up"},
                                             {"restore_s", "restoring"},
                                             {"checkpoint_stall_s", "saving"},
                                             {"evaluation_s", "evaluating"},
                                             {"detection_s", "noticing failures"},
                                             {"idle_s", "idle"},
                                             {"other_s", "other"}}};

void read_wall_time(const Json& run, RunMetrics& metrics) {
  const auto account = run.find("ettr_account");
  if (account == run.end() || !account->is_object()) return;
  const auto seconds = [&](const char* key) {
    const auto found = account->find(key);
    return found != account->end() && found->is_number() ? found->get<double>() : 0;
  };
  metrics.wall_s = seconds("wall_s");
  for (const PartName& part : kParts)
    metrics.wall_time.push_back({part.key, part.name, seconds(part.key)});
}

}  // namespace

RunMetrics read_run_metrics(const std::vector<fs::path>& paths) {
  RunMetrics metrics;
  for (const fs::path& path : paths) {
    const auto folder = run_directory_of(path);
    if (!folder) continue;
    read_lines(*folder / "metrics.jsonl", metrics);
    std::ifstream file(*folder / "run.json");
    const Json run = Json::parse(file, nullptr, false);
    std::vector<double> ettr;
    if (run.is_object()) take(run, "ettr", ettr);
    if (run.is_object()) read_wall_time(run, metrics);
    metrics.ettr = median_of(std::move(ettr));
    break;
  }
  return metrics;
}

}  // namespace sidestream::report
