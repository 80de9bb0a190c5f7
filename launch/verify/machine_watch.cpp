#include "launch/verify/machine_watch.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "profiling/ranges/system_counters.hpp"
#include "profiling/record/proc_files.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kMostGpus = 16;
constexpr double kBusyPercent = 10;  // an idle GPU clocks down, and says nothing of the run

std::vector<fs::path> frequency_files(const fs::path& processors) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(processors, error)) {
    const fs::path file = entry.path() / "cpufreq" / "scaling_cur_freq";
    if (fs::exists(file, error)) files.push_back(file);
  }
  return files;
}

std::map<std::string, double> values_of(const std::vector<record::SystemSample>& samples) {
  std::map<std::string, double> values;
  for (const record::SystemSample& sample : samples) {
    for (const auto& [series, value] : sample.values) values[sample.name + "/" + series] = value;
  }
  return values;
}

std::string key(const char* counter, const char* series) {
  return std::string(counter) + "/" + series;
}

double own_seconds(int whose) {
  rusage used{};
  getrusage(whose, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

void MachineWatch::Mean::add(double value) {
  sum += value;
  ++count;
}

std::optional<double> MachineWatch::Mean::take() {
  const std::optional<double> mean = count > 0 ? std::optional(sum / count) : std::nullopt;
  *this = {};
  return mean;
}

MachineWatch::MachineWatch(const Sources& sources)
    : frequency_files_(frequency_files(sources.processors)),
      processor_times_(sources.processor_times),
      before_(spent()) {
  for (int gpu = 0; gpu < kMostGpus; ++gpu) {
    auto one = std::make_unique<record::Nvml>(gpu, sources.nvml);
    if (!one->found()) break;
    gpus_.push_back(std::move(one));
  }
}

void MachineWatch::look() {
  constexpr std::chrono::seconds kInterval{1};
  if (Clock::now() - looked_ < kInterval) return;
  looked_ = Clock::now();
  look_at_processors();
  look_at_gpus();
}

MachineWatch::Spent MachineWatch::spent() const {
  std::ifstream input(processor_times_);
  const std::string text(std::istreambuf_iterator<char>(input), {});
  record::SystemTotals totals;
  record::read_machine_stat(text, static_cast<double>(sysconf(_SC_CLK_TCK)), totals);
  return {.total = totals.machine_total_s,
          .busy = totals.machine_busy_s,
          .own = own_seconds(RUSAGE_SELF) + own_seconds(RUSAGE_CHILDREN)};
}

std::optional<double> MachineWatch::foreign_share() {
  const Spent now = spent(), then = std::exchange(before_, now);
  const double total = now.total - then.total;
  if (total <= 0) return std::nullopt;
  return std::clamp((now.busy - then.busy - (now.own - then.own)) / total, 0.0, 1.0);
}

void MachineWatch::look_at_processors() {
  for (const fs::path& file : frequency_files_) {
    double kilohertz = 0;
    if (std::ifstream(file) >> kilohertz && kilohertz > 0) cpu_mhz_.add(kilohertz / 1000);
  }
}

void MachineWatch::look_at_gpus() {
  for (const auto& gpu : gpus_) {
    const auto values = values_of(gpu->sample());
    const auto use = values.find(key(ranges::kGpuUse, "kernels"));
    if (use == values.end() || use->second < kBusyPercent) continue;
    const auto clock = values.find(key(ranges::kGpuClock, "core"));
    if (clock != values.end()) gpu_mhz_.add(clock->second);
    const auto held = values.find(key(ranges::kGpuHeldDown, ranges::kHeldDownByPowerOrHeat));
    if (held != values.end()) gpu_held_down_.add(held->second);
  }
}

verify::MachineState MachineWatch::take() {
  looked_ = {};
  return {.cpu_mhz = cpu_mhz_.take(),
          .gpu_mhz = gpu_mhz_.take(),
          .gpu_held_down = gpu_held_down_.take(),
          .foreign_cpu = foreign_share()};
}

}  // namespace sidestream::launch
