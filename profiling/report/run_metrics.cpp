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
#include "profiling/report/figures.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/statistics/bound.hpp"
#include "profiling/statistics/median.hpp"
#include "profiling/trace/most_ranks.hpp"

namespace sidestream::report {
namespace {

namespace fs = std::filesystem;

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

void take_line(const nlohmann::json& line, Figures& figures, RunMetrics& metrics,
               LoggedFigures& logged) {
  append(figures.take(line, "tokens_per_s", core::bounds::kRate), logged.tokens_per_s);
  append(figures.take(line, "mfu_palm", kMfuBounds), logged.mfu_palm);
  const std::optional<double> mfu = figures.take(line, "mfu", kMfuBounds);
  const std::optional<double> step = figures.take(line, "step", core::bounds::kCount);
  append(mfu, logged.mfu);
  if (mfu && step) metrics.mfu_of_steps[static_cast<std::int64_t>(*step)] = *mfu;
}

// Nothing where there is no such file, and where it cannot be read, which is a fault.
std::optional<std::string> text_of_file(const fs::path& file, RunMetrics& metrics) {
  if (!core::is_there(file)) return std::nullopt;
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
  Figures figures(file.string(), metrics.refused_figures);
  LoggedFigures logged;
  bool told = false;
  std::size_t start = 0;
  for (int number = 1; start < content.size(); ++number) {
    const std::size_t end = std::min(content.find('\n', start), content.size());
    const std::string_view text = std::string_view(content).substr(start, end - start);
    try {
      const nlohmann::json line = nlohmann::json::parse(text);
      figures.go_to_line(number);
      if (line.is_object()) take_line(line, figures, metrics, logged);
    } catch (const nlohmann::json::exception& error) {
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

double figure_or_0(const nlohmann::json& object, const char* key, const core::NumberBounds& bounds,
                   Figures& figures) {
  return figures.take(object, key, bounds).value_or(0);
}

// All of it, or nothing: parts of what is not known are none. A remainder may be below 0, and what
// is left for it where a ledger has lost lines.
void fill_wall_time(const nlohmann::json& account, Figures& figures, RunMetrics& metrics) {
  const int refused = figures.refused();
  metrics.wall_s = figure_or_0(account, "wall_s", core::bounds::kSeconds, figures);
  metrics.wall_time.clear();
  for (const PartName& part : kParts)
    metrics.wall_time.push_back(
        {part.key, part.name, figure_or_0(account, part.key, kRemainder, figures)});
  if (figures.refused() == refused) return;
  metrics.wall_s = 0;
  metrics.wall_time.clear();
}

void read_wall_time(const nlohmann::json& run, Figures& figures, RunMetrics& metrics) {
  const auto account = run.find("ettr_account");
  if (account != run.end() && account->is_object()) fill_wall_time(*account, figures, metrics);
}

// Nothing where the run names none, or not as it should.
void read_late_ranks(const nlohmann::json& verdict, Figures& figures, OwnVerdict& own) {
  const auto late = verdict.find("straggler");
  if (late == verdict.end() || !late->is_object()) return;
  const auto ranks = late->find("ranks");
  if (ranks == late->end() || !ranks->is_array()) return;
  own.late_cost_ns = figure_or_0(*late, "cost_ns_per_step", core::bounds::kCount, figures);
  for (const nlohmann::json& rank : *ranks) {
    if (rank.is_number_integer() && trace::is_rank_number(rank.get<std::int64_t>()))
      own.late_ranks.push_back(rank.get<int>());
  }
}

// Its compute is under the word of what it computed on. All of it, or nothing.
void read_verdict(const nlohmann::json& run, Figures& figures, RunMetrics& metrics) {
  const auto found = run.find("verdict");
  if (found == run.end() || !found->is_object()) return;
  const int refused = figures.refused();
  const auto share = [&](const char* key) { return figure_or_0(*found, key, kShare, figures); };
  OwnVerdict verdict{.steps = static_cast<std::int64_t>(
                         figure_or_0(*found, "steps", core::bounds::kCount, figures)),
                     .compute = share(statistics::kOnGpu) + share(statistics::kOnProcessor),
                     .comm = share("comm"),
                     .io = share("io"),
                     .cpu = share("cpu")};
  const auto outliers = found->find("outliers");  // in none of the shares
  if (outliers != found->end() && outliers->is_array())
    verdict.steps -= static_cast<std::int64_t>(outliers->size());
  read_late_ranks(*found, figures, verdict);
  if (verdict.steps > 0 && figures.refused() == refused) metrics.verdict = verdict;
}

// Null where there is none that can be read.
nlohmann::json read_record(const fs::path& file, RunMetrics& metrics) {
  const std::optional<std::string> content = text_of_file(file, metrics);
  if (!content) return nullptr;
  core::FileFault fault{.file = file.string(),
                        .offset_bytes = std::nullopt,
                        .expected = "the record of a run",
                        .found = ""};
  try {
    nlohmann::json record = nlohmann::json::parse(*content);
    if (record.is_object()) return record;
    fault.found = "a value of type " + std::string(record.type_name());
  } catch (const nlohmann::json::exception& error) {
    fault = core::json_fault({.file = fault.file, .expected = fault.expected}, *content, error);
  }
  metrics.faults.push_back(fault.text() + ": what it says of the run is left out");
  return nullptr;
}

}  // namespace

void take_account(const nlohmann::json& account, const std::string& file, RunMetrics& metrics) {
  Figures figures(file + ": its account", metrics.refused_figures);
  fill_wall_time(account, figures, metrics);
  metrics.ettr.reset();
  if (metrics.wall_s <= 0) return;
  const double productive_s = figure_or_0(account, "productive_s", kRemainder, figures);
  metrics.ettr = figures.take({{"ettr", productive_s / metrics.wall_s}}, "ettr", kShare);
}

RunMetrics read_run_metrics(const std::vector<fs::path>& paths) {
  RunMetrics metrics;
  for (const fs::path& path : paths) {
    const auto folder = run_directory_of(path);
    if (!folder) continue;
    read_lines(*folder / "metrics.jsonl", metrics);
    const fs::path record = *folder / "run.json";
    const nlohmann::json run = read_record(record, metrics);
    if (!run.is_object()) break;
    Figures figures(record.string(), metrics.refused_figures);
    metrics.ettr = figures.take(run, "ettr", kShare);
    read_wall_time(run, figures, metrics);
    read_verdict(run, figures, metrics);
    break;
  }
  return metrics;
}

}  // namespace sidestream::report
