#include "launch/reporting/metrics_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.hpp"
#include "launch/reporting/write_all.hpp"

namespace sidestream::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kSyncInterval{5};

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
          .val_loss = optional_at<double>(object, "val_loss")};
}

struct Line {
  std::string_view text;  // with its line break
  StepMetrics metrics;
};

std::vector<Line> complete_lines(std::string_view content, const std::filesystem::path& path) {
  std::vector<Line> lines;
  std::size_t start = 0;
  for (std::size_t end; (end = content.find('\n', start)) != std::string_view::npos;
       start = end + 1) {
    const std::string_view text = content.substr(start, end + 1 - start);
    try {
      lines.push_back({text, metrics_of(Json::parse(text))});
    } catch (const nlohmann::json::exception& error) {
      throw core::DataError(core::FileFault{.file = path.string(),
                                            .offset_bytes = start,
                                            .expected = "a line of metrics as one JSON object",
                                            .found = error.what()});
    }
  }
  return lines;
}

// Leaves the lines up to and including `step`; the file is replaced only if that changes it.
void cut_after_step(const std::filesystem::path& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return;
  const std::string content = core::read_file(path);
  std::string kept;
  for (const Line& line : complete_lines(content, path)) {
    if (line.metrics.step <= step) kept += line.text;
  }
  if (kept != content) core::write_file_atomically(path, kept);
}

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path) {
  throw core::Error(core::system_error_text(what, path, errno));
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
  return object.dump();
}

std::vector<StepMetrics> read_metrics(const std::filesystem::path& path) {
  const std::string content = core::read_file(path);
  std::vector<StepMetrics> all;
  for (const Line& line : complete_lines(content, path)) all.push_back(line.metrics);
  return all;
}

MetricsWriter::MetricsWriter(const std::filesystem::path& path, std::int64_t resumed_step)
    : path_(path), last_sync_(std::chrono::steady_clock::now()) {
  cut_after_step(path, resumed_step);
  file_.reset(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file_) fail("cannot open", path);
}

MetricsWriter::~MetricsWriter() {
  if (file_) fdatasync(file_.get());
}

void MetricsWriter::write(const StepMetrics& metrics) {
  write_all(file_.get(), metrics_line(metrics) + "\n", path_);
  if (std::chrono::steady_clock::now() - last_sync_ >= kSyncInterval) sync();
}

void MetricsWriter::sync() {
  if (fdatasync(file_.get()) != 0) fail("cannot sync", path_);
  last_sync_ = std::chrono::steady_clock::now();
}

}  // namespace sidestream::launch
