#include "launch/trainer/run_record.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/number_fields.hpp"
#include "core/base/processors.hpp"
#include "core/base/shallow_json.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/process/build_summary.hpp"
#include "launch/trainer/or_null.hpp"
#include "launch/trainer/verdict_json.hpp"
#include "profiling/record/numa_nodes.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

constexpr std::size_t kWarmUpSteps = 3;

double median_ms(const std::vector<StepSample>& samples,
                 const std::function<std::int64_t(const StepSample&)>& field) {
  std::vector<std::int64_t> values;
  for (const StepSample& sample : samples) values.push_back(field(sample));
  return static_cast<double>(statistics::upper_median(std::move(values))) * 1e-6;
}

template <typename T>
std::optional<T> from_nullable(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

json to_json(const RunPerformance& performance) {
  return {{"steps", performance.steps},
          {"step_ms_p50", performance.step_ms_p50},
          {"tokens_per_s", performance.tokens_per_s},
          {"exposed_comm_ms_p50", or_null(performance.exposed_comm_ms_p50)},
          {"reader_cost_ms_p50", performance.reader_cost_ms_p50}};
}

json to_json(const GraphUse& use) {
  return {{"captures", use.captures},
          {"capture_s", use.capture_s},
          {"replayed_steps", use.replayed_steps},
          {"eager_steps", use.eager_steps}};
}

RunPerformance performance_from(const json& value) {
  return {.steps = value.at("steps"),
          .step_ms_p50 = value.at("step_ms_p50"),
          .tokens_per_s = value.at("tokens_per_s"),
          .exposed_comm_ms_p50 = from_nullable<double>(value.at("exposed_comm_ms_p50")),
          .reader_cost_ms_p50 = value.at("reader_cost_ms_p50")};
}

// Of the first rank.
json numa_json() {
  const auto nodes = record::numa_nodes(core::allowed_processors());
  if (!nodes) return nullptr;
  return {{"nodes", nodes->machine},
          {"nodes_of_rank", nodes->process},
          {"farthest", or_null(nodes->farthest)}};
}

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

std::string text_or_empty(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? "" : found->get<std::string>();
}

json to_json(const RunRecord& record) {
  json result = {{"schema", 1},
                 {"version", version_text()},
                 {"build", build_summary_text()},
                 {"machine",
                  {{"processor", processor_name()},
                   {"nodes", record.nodes},
                   {"cores", sysconf(_SC_NPROCESSORS_ONLN)},  // of this node
                   {"gpu", text_or_null(record.gpu)},
                   {"gpu_driver", text_or_null(record.gpu_driver)}}},
                 {"numa", numa_json()},
                 {"command_line", record.command_line},
                 {"started_at", record.started_at},
                 {"world_size", record.world_size},
                 {"threads_per_rank", record.threads_per_rank},
                 {"backend", record.backend},
                 {"baseline", record.baseline},
                 {"precision", record.precision},
                 {"parameters", record.parameters},
                 {"data",
                  {{"train_fingerprint", text_or_null(record.data.train)},
                   {"validation_fingerprint", text_or_null(record.data.validation)}}},
                 {"warnings", record.warnings},
                 {"exit_code", or_null(record.exit_code)},
                 {"wall_s", or_null(record.wall_s)},
                 {"last_step", or_null(record.last_step)},
                 {"last_val_loss", or_null(record.last_val_loss)},
                 {"time_to_target_s", or_null(record.time_to_target_s)},
                 {"ettr", record.ettr ? json(record.ettr->ettr()) : json(nullptr)}};
  if (record.ettr) result["ettr_account"] = to_json(*record.ettr);
  result["performance"] = record.performance ? to_json(*record.performance) : json(nullptr);
  result["memory"] = record.memory ? to_json(*record.memory) : json(nullptr);
  if (record.cuda_graph) result["cuda_graph"] = to_json(*record.cuda_graph);
  if (const auto& use = record.gpu_operators)
    result["gpu_operators"] = {{"packed_attention", use->packed_attention},
                               {"tuned_products", use->tuned_products}};
  result["verdict"] = record.verdict ? verdict_json(*record.verdict) : json(nullptr);
  return result;
}

// A record of before there was such a key has an empty one.
data::Fingerprints data_of(const json& value) {
  const json data = value.value("data", json::object());
  return {.train = text_or_empty(data, "train_fingerprint"),
          .validation = text_or_empty(data, "validation_fingerprint")};
}

constexpr core::NumberField kFigures[] = {
    {"world_size", {1, 1 << 20}},         {"threads_per_rank", {1, 1 << 20}},
    {"parameters", core::bounds::kCount}, {"exit_code", {0, 255}},
    {"wall_s", core::bounds::kSeconds},   {"last_step", core::bounds::kCount},
    {"last_val_loss", {-1e9, 1e9}},       {"time_to_target_s", core::bounds::kSeconds}};
constexpr core::NumberField kPerformanceFigures[] = {
    {"steps", core::bounds::kCount},
    {"step_ms_p50", core::bounds::kMilliseconds},
    {"tokens_per_s", core::bounds::kRate},
    {"exposed_comm_ms_p50", core::bounds::kMilliseconds},
    {"reader_cost_ms_p50", core::bounds::kMilliseconds}};

// Throws DataError for figures that cannot be. Those that are missing are not looked at here.
void check_figures(const json& record, const core::JsonPlace& place) {
  core::check_numbers(record, kFigures, place);
  const json performance = record.value("performance", json());
  if (performance.is_object()) core::check_numbers(performance, kPerformanceFigures, place);
  const json memory = record.value("memory", json());
  for (const auto& [key, value] : memory.items()) {
    if (value.is_number()) core::number_within(memory, key.c_str(), core::bounds::kCount, place);
  }
}

RunRecord record_from(const json& value) {
  RunRecord record{.command_line = value.at("command_line"),
                   .started_at = value.at("started_at"),
                   .world_size = value.at("world_size"),
                   .nodes = value.at("machine").at("nodes"),
                   .threads_per_rank = value.at("threads_per_rank"),
                   .backend = value.at("backend"),
                   .baseline = value.at("baseline"),
                   .precision = value.at("precision"),
                   .parameters = value.at("parameters"),
                   .data = data_of(value),
                   .gpu = text_or_empty(value.at("machine"), "gpu"),
                   .gpu_driver = text_or_empty(value.at("machine"), "gpu_driver"),
                   .warnings = value.at("warnings").get<std::vector<std::string>>(),
                   .exit_code = from_nullable<int>(value.at("exit_code")),
                   .wall_s = from_nullable<double>(value.at("wall_s")),
                   .last_step = from_nullable<std::int64_t>(value.at("last_step")),
                   .last_val_loss = from_nullable<double>(value.at("last_val_loss")),
                   .time_to_target_s = from_nullable<double>(value.at("time_to_target_s")),
                   .performance = std::nullopt};
  if (!value.at("performance").is_null())
    record.performance = performance_from(value.at("performance"));
  record.memory = memory_use_from(value.value("memory", json(nullptr)));
  return record;
}

}  // namespace

RunPerformance summarise(const std::vector<StepSample>& samples, std::int64_t tokens_per_step) {
  std::vector<StepSample> steady = samples;
  if (steady.size() > 2 * kWarmUpSteps) steady.erase(steady.begin(), steady.begin() + kWarmUpSteps);
  if (steady.empty()) return {};
  RunPerformance result{
      .steps = static_cast<std::int64_t>(steady.size()),
      .step_ms_p50 = median_ms(steady, [](const StepSample& s) { return s.step_ns; }),
      .tokens_per_s = 0,
      .reader_cost_ms_p50 = median_ms(steady, [](const StepSample& s) { return s.reader_ns; })};
  if (std::ranges::all_of(steady, [](const auto& s) { return s.exposed_comm_ns.has_value(); }))
    result.exposed_comm_ms_p50 =
        median_ms(steady, [](const StepSample& s) { return *s.exposed_comm_ns; });
  result.tokens_per_s = static_cast<double>(tokens_per_step) / (result.step_ms_p50 * 1e-3);
  return result;
}

void write_run_record(const RunRecord& record, const std::filesystem::path& file) {
  core::write_file_atomically(file, to_json(record).dump(2) + "\n");
}

std::string gpu_driver_text() {
  std::ifstream input("/proc/driver/nvidia/version");
  std::string line;
  std::getline(input, line);
  return line;
}

RunRecord read_run_record(const std::filesystem::path& file) {
  const core::JsonPlace place{.file = file.string(), .expected = "a run.json of this version"};
  std::string text;
  try {
    text = core::read_file(file, std::size_t{1} << 24);
    const json record = core::parse_shallow_json(text);
    if (record.is_object()) check_figures(record, place);
    return record_from(record);
  } catch (const json::exception& error) {
    throw core::DataError(core::json_fault(place, text, error));
  } catch (const core::NestingError& error) {
    throw core::DataError(core::FileFault{place.file, std::nullopt, error.what(), "more"});
  } catch (const core::Error& error) {
    throw core::DataError(error.what());
  }
}

}  // namespace sidestream::launch
