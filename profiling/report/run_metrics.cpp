#include "profiling/report/run_metrics.hpp"

#include <fmt/format.h>

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
#include "profiling/report/figures.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/statistics/bound.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return statistics::median(std::move(values));
}

// What the lines of metrics.jsonl say, for medians.
struct LoggedFigures {
  std::vector<double> tokens_per_s, mfu, mfu_palm;
};

void append(const std::optional<double>& value, std::vector<double>& values) {
  if (value) values.push_back(*value);
}

void take_line(const Json& line, Figures& figures, RunMetrics& metrics, LoggedFigures& logged) {
  append(figures.take(line, "tokens_per_s", kRate), logged.tokens_per_s);
  append(figures.take(line, "mfu_palm", kMfuBounds), logged.mfu_palm);
  const std::optional<double> mfu = figures.take(line, "mfu", kMfuBounds);
  const std::optional<double> step = figures.take(line, "step", kCount);
  append(mfu, logged.mfu);
  if (mfu && step) metrics.mfu_of_steps[static_cast<std::int64_t>(*step)] = *mfu;
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
  Figures figures(file.string(), metrics.faults);
  LoggedFigures logged;
  bool told = false;
  std::size_t start = 0;
  for (int number = 1; start < content.size(); ++number) {
    const std::size_t end = std::min(content.find('\n', start), content.size());
    const std::string_view text = std::string_view(content).substr(start, end - start);
    try {
      const Json line = Json::parse(text);
      figures.go_to("line " + std::to_string(number));
      if (line.is_object()) take_line(line, figures, metrics, logged);
    } catch (const Json::exception& error) {
      const core::JsonPlace place{.file = file.string(),
                                  .offset_bytes = start,
                                  .expected = "one JSON object in line " + std::to_string(number)};
      if (end < content.size() && !std::exchange(told, true))
        metrics.faults.push_back(core::json_fault(place, text, error).text() +
                                 ": lines like this are passed over");
    }
    start = end + 1;
  }
  metrics.tokens_per_s = median_of(std::move(logged.tokens_per_s));
  metrics.mfu = median_of(std::move(logged.mfu));
  metrics.mfu_palm = median_of(std::move(logged.mfu_palm));
  if (metrics.mfu && *metrics.mfu > 1)
    metrics.faults.push_back(
        fmt::format("{}: an MFU of {:.4g} % cannot be: the ceilings that it was "
                    "told from are too low (`sidestream bench ceilings`)",
                    file.string(), 100 * *metrics.mfu));
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

double seconds_at(const Json& object, const char* key, Figures& figures) {
  return figures.take(object, key, kSeconds).value_or(0);
}

void fill_wall_time(const Json& account, Figures& figures, RunMetrics& metrics) {
  metrics.wall_s = seconds_at(account, "wall_s", figures);
  metrics.wall_time.clear();
  for (const PartName& part : kParts)
    metrics.wall_time.push_back({part.key, part.name, seconds_at(account, part.key, figures)});
}

void read_wall_time(const Json& run, Figures& figures, RunMetrics& metrics) {
  const auto account = run.find("ettr_account");
  if (account != run.end() && account->is_object()) fill_wall_time(*account, figures, metrics);
}

// Its compute is under the word of what it computed on.
void read_verdict(const Json& run, Figures& figures, RunMetrics& metrics) {
  const auto found = run.find("verdict");
  if (found == run.end() || !found->is_object()) return;
  const double steps = figures.take(*found, "steps", kCount).value_or(0);
  if (steps <= 0) return;
  const auto share = [&](const char* key) { return figures.take(*found, key, kShare).value_or(0); };
  metrics.verdict =
      OwnVerdict{.steps = static_cast<std::int64_t>(steps),
                 .compute = share(statistics::kOnGpu) + share(statistics::kOnProcessor),
                 .comm = share("comm"),
                 .io = share("io"),
                 .cpu = share("cpu")};
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

void take_account(const Json& account, const std::string& file, RunMetrics& metrics) {
  Figures figures(file, metrics.faults);
  fill_wall_time(account, figures, metrics);
  if (metrics.wall_s > 0)
    metrics.ettr = seconds_at(account, "productive_s", figures) / metrics.wall_s;
}

RunMetrics read_run_metrics(const std::vector<fs::path>& paths) {
  RunMetrics metrics;
  for (const fs::path& path : paths) {
    const auto folder = run_directory_of(path);
    if (!folder) continue;
    read_lines(*folder / "metrics.jsonl", metrics);
    const fs::path record = *folder / "run.json";
    const Json run = read_record(record, metrics);
    if (!run.is_object()) break;
    Figures figures(record.string(), metrics.faults);
    metrics.ettr = figures.take(run, "ettr", kShare);
    read_wall_time(run, figures, metrics);
    read_verdict(run, figures, metrics);
    break;
  }
  return metrics;
}

}  // namespace sidestream::report
