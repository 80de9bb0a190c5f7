#include "profiling/report/run_metrics.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_fault.hpp"
#include "profiling/report/number_at.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/statistics/bound.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void take(const Json& line, const char* key, std::vector<double>& values) {
  if (const auto value = number_at(line, key)) values.push_back(*value);
}

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return statistics::median(std::move(values));
}

void take_line(const Json& line, RunMetrics& metrics, std::vector<double>& tokens,
               std::vector<double>& mfu, std::vector<double>& palm) {
  take(line, "tokens_per_s", tokens);
  take(line, "mfu", mfu);
  if (line.contains("mfu") && line["mfu"].is_number() && line.contains("step") &&
      line["step"].is_number_integer())
    metrics.mfu_of_steps[line["step"].get<std::int64_t>()] = line["mfu"].get<double>();
  take(line, "mfu_palm", palm);
}

// Nothing where there is no such file, and where it cannot be read, which is a fault.
std::optional<std::string> text_of_file(const fs::path& file, RunMetrics& metrics) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    return core::read_file(file);
  } catch (const core::Error& error) {
    metrics.faults.push_back(std::string(error.what()) + ": what it says of the run is left out");
    return std::nullopt;
  }
}

// The last line may still be being written: without its end it is no fault.
void read_lines(const fs::path& file, RunMetrics& metrics) {
  const std::string content = text_of_file(file, metrics).value_or("");
  std::vector<double> tokens, mfu, palm;
  std::size_t start = 0;
  for (int number = 1; start < content.size(); ++number) {
    const std::size_t end = std::min(content.find('\n', start), content.size());
    const std::string_view text = std::string_view(content).substr(start, end - start);
    try {
      const Json line = Json::parse(text);
      if (line.is_object()) take_line(line, metrics, tokens, mfu, palm);
    } catch (const Json::exception& error) {
      const core::JsonPlace place{.file = file.string(),
                                  .offset_bytes = start,
                                  .expected = "one JSON object in line " + std::to_string(number)};
      if (end < content.size() && metrics.faults.empty())
        metrics.faults.push_back(core::json_fault(place, text, error).text() +
                                 ": lines like this are passed over");
    }
    start = end + 1;
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

double number_or_0(const Json& object, const char* key) {
  return number_at(object, key).value_or(0);
}

void fill_wall_time(const Json& account, RunMetrics& metrics) {
  metrics.wall_s = number_or_0(account, "wall_s");
  metrics.wall_time.clear();
  for (const PartName& part : kParts)
    metrics.wall_time.push_back({part.key, part.name, number_or_0(account, part.key)});
}

void read_wall_time(const Json& run, RunMetrics& metrics) {
  const auto account = run.find("ettr_account");
  if (account != run.end() && account->is_object()) fill_wall_time(*account, metrics);
}

// Its compute is under the word of what it computed on.
void read_verdict(const Json& run, RunMetrics& metrics) {
  const auto found = run.find("verdict");
  if (found == run.end() || !found->is_object() || number_or_0(*found, "steps") <= 0) return;
  constexpr double kMostSteps = 1e15;
  metrics.verdict = OwnVerdict{
      .steps = static_cast<std::int64_t>(std::min(number_or_0(*found, "steps"), kMostSteps)),
      .compute =
          number_or_0(*found, statistics::kOnGpu) + number_or_0(*found, statistics::kOnProcessor),
      .comm = number_or_0(*found, "comm"),
      .io = number_or_0(*found, "io"),
      .cpu = number_or_0(*found, "cpu")};
}

// Null where there is none that can be read.
Json read_record(const fs::path& file, RunMetrics& metrics) {
  const std::optional<std::string> content = text_of_file(file, metrics);
  if (!content) return nullptr;
  try {
    return Json::parse(*content);
  } catch (const Json::exception& error) {
    const core::JsonPlace place{.file = file.string(), .expected = "the record of a run"};
    metrics.faults.push_back(core::json_fault(place, *content, error).text() +
                             ": what it says of the run is left out");
    return nullptr;
  }
}

}  // namespace

void take_account(const Json& account, RunMetrics& metrics) {
  fill_wall_time(account, metrics);
  if (metrics.wall_s > 0) metrics.ettr = number_or_0(account, "productive_s") / metrics.wall_s;
}

RunMetrics read_run_metrics(const std::vector<fs::path>& paths) {
  RunMetrics metrics;
  for (const fs::path& path : paths) {
    const auto folder = run_directory_of(path);
    if (!folder) continue;
    read_lines(*folder / "metrics.jsonl", metrics);
    const Json run = read_record(*folder / "run.json", metrics);
    std::vector<double> ettr;
    if (run.is_object()) take(run, "ettr", ettr);
    if (run.is_object()) read_wall_time(run, metrics);
    if (run.is_object()) read_verdict(run, metrics);
    metrics.ettr = median_of(std::move(ettr));
    break;
  }
  return metrics;
}

}  // namespace sidestream::report
