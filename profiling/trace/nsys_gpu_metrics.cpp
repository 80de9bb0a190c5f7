#include "profiling/trace/nsys_gpu_metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "profiling/ranges/system_counters.hpp"
#include "profiling/trace/nsys_columns.hpp"
#include "profiling/trace/nsys_times.hpp"

namespace sidestream::trace {
namespace {

constexpr const char* kSampleTable = "GPU_METRICS";
constexpr const char* kNameTable = "TARGET_INFO_GPU_METRICS";
constexpr const char* kCudaDevices = "TARGET_INFO_CUDA_DEVICE";
constexpr NsysColumns kSampleColumns = {"timestamp", "metricId", "value"};
constexpr NsysColumns kNameColumns = {"metricId", "metricName"};

struct Metric {
  std::string_view word;  // in its name
  const char* series;
};
constexpr std::array<Metric, 7> kMetrics = {{{"Tensor Active", ranges::kTensorActive},
                                             {"SMs Active", ranges::kSmsActive},
                                             {"SM Active", ranges::kSmsActive},
                                             {"DRAM Read", ranges::kDramRead},
                                             {"VRAM Read", ranges::kDramRead},
                                             {"DRAM Write", ranges::kDramWritten},
                                             {"VRAM Write", ranges::kDramWritten}}};

// Null: of no interest, or in another unit: "[Cycles Active]".
const char* series_of(std::string_view name) {
  if (name.find('[') != std::string_view::npos && name.find('%') == std::string_view::npos)
    return nullptr;
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(), [&](const Metric& one) {
    return name.find(one.word) != std::string_view::npos;
  });
  return found == kMetrics.end() ? nullptr : found->series;
}

// Numbers of metrics are those of a type: GPUs of one machine may differ.
class MetricNames {
 public:
  explicit MetricNames(const SqliteFile& file) {
    const auto columns = file.columns(kNameTable);
    has_types_ = columns.contains("typeId");
    SqliteRows rows =
        file.query("SELECT " + SqliteFile::first_of(columns, {"typeId"}) +
                   ", metricId, metricName FROM " + kNameTable + " ORDER BY metricId");
    std::set<std::pair<std::int64_t, std::string_view>> taken;  // a GPU has each of them once
    while (rows.next()) {
      const char* series = series_of(rows.text(2));
      if (series != nullptr && taken.insert({rows.integer(0), series}).second)
        series_[{rows.integer(0), rows.integer(1)}] = series;
    }
  }

  // Null: of no interest.
  const char* find(std::int64_t type, std::int64_t metric) const {
    const auto found = series_.find({has_types_ ? type : 0, metric});
    return found == series_.end() ? nullptr : found->second;
  }
  // "1,2,7"; empty: none.
  std::string numbers() const {
    std::set<std::int64_t> all;
    for (const auto& [key, series] : series_) all.insert(key.second);
    std::string text;
    for (const std::int64_t one : all) text += (text.empty() ? "" : ",") + std::to_string(one);
    return text;
  }

 private:
  bool has_types_ = false;
  std::map<std::pair<std::int64_t, std::int64_t>, const char*> series_;
};

struct Sample {
  std::int64_t time_ns;
  int gpu;
  const char* series;
  double percent;
};

struct Samples {
  std::vector<Sample> kept;                                     // by time
  std::map<int, std::map<std::string, std::uint64_t>> skipped;  // GPU -> reason -> samples
};

Samples read_samples(const SqliteFile& file, SenselessTimes& senseless) {
  Samples samples;
  const MetricNames names(file);
  const std::string numbers = names.numbers();
  if (numbers.empty()) return samples;
  const auto columns = file.columns(kSampleTable);
  SqliteRows rows = file.query("SELECT " + SqliteFile::first_of(columns, {"typeId"}) +
                               ", metricId, timestamp, value FROM " + kSampleTable +
                               " WHERE metricId IN (" + numbers + ")");
  constexpr std::int64_t kGpuBits = 0xFF;  // of a type; above them machine and kind of event
  while (rows.next()) {
    const std::int64_t type = rows.integer(0);
    const char* series = names.find(type, rows.integer(1));
    if (series == nullptr) continue;
    const int gpu = static_cast<int>(type & kGpuBits);
    const NsysTimes times = nsys_instant_of(rows, 2);
    const bool has_value = rows.is_number(3) && std::isfinite(rows.real(3));
    if (times.fault) senseless.add(*times.fault, kSampleTable, series);
    if (times.fault || !has_value)
      samples.skipped[gpu][times.fault ? times.fault->reason : "value that is no number"] += 1;
    else
      samples.kept.push_back({times.start_ns, gpu, series, rows.real(3)});
  }
  std::stable_sort(samples.kept.begin(), samples.kept.end(),
                   [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; });
  return samples;
}

// CUDA numbers the devices that a process may see, Nsight Systems those of the machine.
class GpuOfDevice {
 public:
  explicit GpuOfDevice(const SqliteFile& file) {
    if (!file.has(kCudaDevices)) return;
    const auto columns = file.columns(kCudaDevices);
    if (!has_all(columns, {"gpuId", "cudaId"})) return;
    SqliteRows rows = file.query("SELECT gpuId, cudaId, " + SqliteFile::first_of(columns, {"pid"}) +
                                 " FROM " + kCudaDevices);
    while (rows.next()) {
      const auto gpu = static_cast<int>(rows.integer(0));
      const auto device = static_cast<int>(rows.integer(1));
      of_process_[{rows.integer(2), device}] = gpu;
      of_any_.try_emplace(device, gpu);
    }
  }

  int find(const NsysProcesses::Device& one) const {
    const auto own = of_process_.find({static_cast<std::int64_t>(one.process), one.device});
    if (own != of_process_.end()) return own->second;
    const auto any = of_any_.find(one.device);
    return any == of_any_.end() ? one.device : any->second;
  }

 private:
  std::map<std::pair<std::int64_t, int>, int> of_process_;
  std::map<int, int> of_any_;
};

}  // namespace

std::uint64_t read_gpu_metrics(const SqliteFile& file, NsysProcesses& processes,
                               SenselessTimes& senseless) {
  if (!file.has(kSampleTable) || !has_all(file.columns(kSampleTable), kSampleColumns)) return 0;
  if (!file.has(kNameTable) || !has_all(file.columns(kNameTable), kNameColumns)) return 0;
  const Samples samples = read_samples(file, senseless);
  const GpuOfDevice gpus(file);
  for (const NsysProcesses::Device& device : processes.devices()) {
    RankTimeline& timeline = processes[device.timeline];
    const int gpu = gpus.find(device);
    const NameId counter = timeline.names.intern(ranges::kGpuCounters);
    std::map<const char*, NameId> series;
    for (const Metric& one : kMetrics) series[one.series] = timeline.names.intern(one.series);
    if (const auto skipped = samples.skipped.find(gpu); skipped != samples.skipped.end()) {
      for (const auto& [reason, count] : skipped->second) timeline.skip(reason, count);
    }
    for (const Sample& one : samples.kept) {
      if (one.gpu == gpu)
        timeline.add_counter({counter, series[one.series], one.time_ns, one.percent});
    }
  }
  return samples.kept.size();
}

std::vector<std::string> missing_gpu_metric_columns(const SqliteFile& file) {
  std::vector<std::string> warnings;
  if (!file.has(kSampleTable)) return warnings;
  note_missing(file, kSampleTable, kSampleColumns, warnings);
  note_missing(file, kNameTable, kNameColumns, warnings);
  if (!file.has(kNameTable))
    warnings.push_back("no table " + std::string(kNameTable) +
                       ": counters of the GPU have no names");
  return warnings;
}

}  // namespace sidestream::trace
