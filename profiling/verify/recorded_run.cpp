#include "profiling/verify/recorded_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/base/config_line.hpp"
#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/shallow_json.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::verify {
namespace {

namespace bounds = core::bounds;
namespace fs = std::filesystem;

std::string text_of_file(const fs::path& file) {
  try {
    return core::read_file(file);
  } catch (const core::Error& error) {
    throw core::DataError(std::string(error.what()) +
                          ". A run directory holds config.cfg, run.json and metrics.jsonl");
  }
}

double number_or_nan(const nlohmann::json& line, const char* key) {
  const nlohmann::json& value = line.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

template <typename T>
std::optional<T> maybe(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

// Null is what a trainer writes for no finite number; empty: not evaluated.
std::optional<double> val_loss_of(const nlohmann::json& line) {
  return line.contains("val_loss") ? std::optional(number_or_nan(line, "val_loss")) : std::nullopt;
}

std::int64_t step_number_of(const nlohmann::json& line, const core::JsonPlace& place) {
  const double number = core::number_within(line, "step", bounds::kCount, place);
  if (number != std::floor(number))
    throw core::DataError(core::FileFault{place.file, place.offset_bytes,
                                          place.expected + " with a whole number as \"step\"",
                                          core::value_words(line.at("step"))});
  return static_cast<std::int64_t>(number);
}

RecordedStep step_of(const nlohmann::json& line, const core::JsonPlace& place) {
  constexpr double kRounding_s = 1e-4;
  const double step_s = core::number_within(line, "batch_cost_s", bounds::kSeconds, place);
  const core::NumberBounds of_step = {
      0, 1.01 * step_s + kRounding_s};  // waiting for data is a part of it
  return {.step = step_number_of(line, place),
          .loss = number_or_nan(line, "loss"),
          .step_ms = step_s * 1e3,
          .reader_ms = core::number_within(line, "reader_cost_s", of_step, place) * 1e3,
          .memory_bytes = core::maybe_number_within(line, "memory_bytes", bounds::kCount, place),
          .val_loss = val_loss_of(line)};
}

std::vector<RecordedStep> read_steps(const fs::path& file) {
  const std::string content = text_of_file(file);
  std::vector<RecordedStep> steps;
  std::size_t start = 0;
  int number = 1;
  for (std::size_t end; (end = content.find('\n', start)) != std::string::npos;
       start = end + 1, ++number) {
    const std::string_view line = std::string_view(content).substr(start, end - start);
    const core::JsonPlace place{
        .file = file.string(),
        .offset_bytes = start,
        .expected = fmt::format("a line of metrics as one JSON object in line {}", number)};
    try {
      steps.push_back(step_of(core::parse_shallow_json(line), place));
    } catch (const nlohmann::json::exception& error) {
      throw core::DataError(core::json_fault(place, line, error));
    } catch (const core::NestingError& error) {
      throw core::DataError(core::FileFault{place.file, start, error.what(), "more"});
    }
  }
  return steps;
}

std::string plain(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void read_record(const fs::path& file, RecordedRun& run) {
  const std::string content = text_of_file(file);
  try {
    const nlohmann::json record = core::parse_shallow_json(content);
    for (const char* key : {"world_size", "threads_per_rank", "backend", "precision", "parameters"})
      run.environment[key] = plain(record.at(key));
    run.environment["processor"] = plain(record.at("machine").at("processor"));
    run.environment["nodes"] = plain(record.at("machine").at("nodes"));
    if (const auto cores = maybe<int>(record.at("machine"), "cores"))
      run.environment["cores"] = std::to_string(*cores);
    for (const char* key : {"gpu", "gpu_driver"}) {
      if (const auto value = maybe<std::string>(record.at("machine"), key))
        run.environment[key] = *value;
    }
    if (const auto numa = maybe<nlohmann::json>(record, "numa")) {
      run.environment["numa_nodes"] = plain(numa->at("nodes"));
      run.environment["numa_nodes_of_rank"] = plain(numa->at("nodes_of_rank"));
      if (const auto farthest = maybe<int>(*numa, "farthest"))
        run.environment["numa_farthest"] = std::to_string(*farthest);
    }
    if (const auto data = maybe<nlohmann::json>(record, "data")) {
      run.data = {.train = maybe<std::string>(*data, "train_fingerprint").value_or(""),
                  .validation = maybe<std::string>(*data, "validation_fingerprint").value_or("")};
    }
    run.environment["build"] = plain(record.at("build"));
    run.version = plain(record.at("version"));
    run.command_line = plain(record.at("command_line"));
    run.started_at = maybe<std::string>(record, "started_at").value_or("");
    run.exit_code = maybe<int>(record, "exit_code");
    run.last_step = maybe<std::int64_t>(record, "last_step");
    const nlohmann::json& performance = record.at("performance");
    if (performance.is_null()) return;
    const core::JsonPlace place{.file = file.string(), .expected = "the record of a run"};
    run.exposed_comm_ms =
        core::maybe_number_within(performance, "exposed_comm_ms_p50", bounds::kMilliseconds, place);
    run.tokens_per_s = core::maybe_number_within(performance, "tokens_per_s", bounds::kRate, place);
  } catch (const nlohmann::json::exception& error) {
    throw core::DataError(
        core::json_fault({.file = file.string(), .expected = "the record of a run of this version"},
                         content, error));
  } catch (const core::NestingError& error) {
    throw core::DataError(core::FileFault{file.string(), std::nullopt, error.what(), "more"});
  }
}

}  // namespace

std::map<std::string, std::string> config_values(const std::string& content,
                                                 const std::string& origin) {
  std::istringstream lines(content);
  std::map<std::string, std::string> values;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const core::ConfigLine read = core::read_config_line(line);
    if (read.text.empty()) continue;
    if (read.key.empty())
      throw core::DataError(
          fmt::format("{}:{}: expected `name = value`, found '{}'", origin, number, read.text));
    if (!read.value)
      throw core::DataError(fmt::format("{}:{}: {}: expected one value, or one in double quotes",
                                        origin, number, read.key));
    values[std::string(read.key)] = *read.value;
  }
  return values;
}

std::map<std::string, std::string> read_config(const fs::path& file) {
  return config_values(text_of_file(file), file.string());
}

RecordedRun read_recorded_run(const fs::path& folder) {
  RecordedRun run{.folder = folder};
  read_record(folder / "run.json", run);
  run.config = read_config(folder / "config.cfg");
  run.steps = read_steps(folder / "metrics.jsonl");
  run.machine = read_machine_state(folder / "machine.json");
  return run;
}

double median_of(std::vector<double> values) {
  if (values.empty()) throw core::Error("a median of nothing");
  return statistics::median(std::move(values));
}

std::optional<TypicalStep> typical_step(const RecordedRun& run, int warm_up) {
  std::vector<double> steps, readers;
  TypicalStep typical;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const RecordedStep& one = run.steps[i];
    if (one.memory_bytes)
      typical.peak_memory_bytes =
          std::max(typical.peak_memory_bytes.value_or(0), *one.memory_bytes);
    if (i < static_cast<std::size_t>(warm_up)) continue;
    steps.push_back(one.step_ms);
    readers.push_back(one.reader_ms);
  }
  if (steps.empty()) return std::nullopt;
  typical.steps = static_cast<std::int64_t>(steps.size());
  typical.step_ms = median_of(std::move(steps));
  typical.reader_ms = median_of(std::move(readers));
  return typical;
}

}  // namespace sidestream::verify
