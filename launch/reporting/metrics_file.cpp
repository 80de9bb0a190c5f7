#include "launch/reporting/metrics_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"
#include "launch/reporting/jsonl_file.hpp"

namespace sidestream::launch {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? json_of(static_cast<double>(*value)) : Json(nullptr);
}

double number_at(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

template <typename T>
std::optional<T> optional_at(const Json& object, const char* key) {
  if (!object.contains(key) || object.at(key).is_null()) return std::nullopt;
  return object.at(key).get<T>();
}

StepMetrics metrics_of(const Json& object) {
  return {.step = object.at("step").get<std::int64_t>(),
          .epoch = object.at("epoch").get<std::int64_t>(),
          .loss = number_at(object, "loss"),
          .grad_norm = number_at(object, "grad_norm"),
          .lr = number_at(object, "lr"),
          .batch_cost_s = number_at(object, "batch_cost_s"),
          .reader_cost_s = number_at(object, "reader_cost_s"),
          .samples_per_s = number_at(object, "samples_per_s"),
          .tokens_per_s = number_at(object, "tokens_per_s"),
          .mfu = optional_at<double>(object, "mfu"),
          .memory_bytes = optional_at<std::int64_t>(object, "memory_bytes"),
          .eta_s = optional_at<double>(object, "eta_s"),
          .val_loss = optional_at<double>(object, "val_loss"),
          .loss_scale = optional_at<double>(object, "loss_scale"),
          .left_out = optional_at<std::int64_t>(object, "left_out")};
}

// With their line breaks; what is left at the end, from a kill in the middle, is none.
std::vector<std::string_view> complete_lines(std::string_view content) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t end; (end = content.find('\n', start)) != std::string_view::npos;
       start = end + 1) {
    lines.push_back(content.substr(start, end + 1 - start));
  }
  return lines;
}

std::optional<StepMetrics> metrics_of(std::string_view line) {
  try {
    return metrics_of(Json::parse(line));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// Leaves the lines up to and including `step`; the file is replaced only if that changes it. A line
// that is damaged does not keep a run from going on: the file as it was stays beside the new one.
// Returns what is to be told of that.
[[nodiscard]] std::string cut_after_step(const std::filesystem::path& path, std::int64_t step) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  const std::string content = read_log(path), aside = path.string() + ".damaged";
  std::string kept;
  int damaged = 0;
  for (const std::string_view text : complete_lines(content)) {
    const std::optional<StepMetrics> metrics = metrics_of(text);
    damaged += !metrics;
    if (metrics && metrics->step <= step) kept += text;
  }
  if (damaged > 0) core::write_file_atomically(aside, content);
  if (kept != content) core::write_file_atomically(path, kept);
  return damaged == 0
             ? ""
             : fmt::format("{}: {} {} no metrics and {} left out; {} is the file as it was",
                           path.string(), damaged, damaged == 1 ? "line is" : "lines are",
                           damaged == 1 ? "is" : "are", aside);
}

std::string content_of(const std::filesystem::path& path) {
  try {
    return read_log(path);
  } catch (const core::Error& error) {
    throw core::DataError(error.what());
  }
}

}  // namespace

std::string metrics_line(const StepMetrics& metrics) {
  Json object = {
      {"step", metrics.step},
      {"epoch", metrics.epoch},
      {"loss", json_of(metrics.loss)},
      {"grad_norm", json_of(metrics.grad_norm)},
      {"lr", json_of(metrics.lr)},
      {"batch_cost_s", json_of(metrics.batch_cost_s)},
      {"reader_cost_s", json_of(metrics.reader_cost_s)},
      {"samples_per_s", json_of(metrics.samples_per_s)},
      {"tokens_per_s", json_of(metrics.tokens_per_s)},
      {"mfu", json_of(metrics.mfu)},
      {"memory_bytes", metrics.memory_bytes ? Json(*metrics.memory_bytes) : Json(nullptr)},
      {"eta_s", json_of(metrics.eta_s)}};
  if (metrics.val_loss) object["val_loss"] = json_of(*metrics.val_loss);
  if (metrics.loss_scale) object["loss_scale"] = json_of(*metrics.loss_scale);
  if (metrics.left_out) object["left_out"] = *metrics.left_out;
  return object.dump();
}

std::vector<StepMetrics> read_metrics(const std::filesystem::path& path) {
  const std::string content = content_of(path);
  std::vector<StepMetrics> all;
  for (const std::string_view line : complete_lines(content)) {
    try {
      all.push_back(metrics_of(Json::parse(line)));
    } catch (const nlohmann::json::exception& error) {
      throw core::DataError(core::json_fault(
          {.file = path.string(),
           .offset_bytes = static_cast<std::uint64_t>(line.data() - content.data()),
           .expected = "a line of metrics as one JSON object"},
          line, error));
    }
  }
  return all;
}

MetricsWriter::MetricsWriter(const std::filesystem::path& path, std::int64_t resumed_step)
    : file_(path, AppendedFile::Content::kLines) {
  damage_ = cut_after_step(path, resumed_step);
  file_.finish();
}

void MetricsWriter::rewind(std::int64_t step) {
  file_.finish();
  file_.open_again();  // what is cut has another file's number
  damage_ = cut_after_step(file_.path(), step);
}

MetricsWriter::~MetricsWriter() { file_.sync(); }

void MetricsWriter::write(const StepMetrics& metrics) {
  file_.append(metrics_line(metrics) + "\n");
}

}  // namespace sidestream::launch
