#include "launch/verify/clock_watch.hpp"

#include <fstream>
#include <map>
#include <string>

#include "profiling/ranges/system_counters.hpp"

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

}  // namespace

void ClockWatch::Mean::add(double value) {
  sum += value;
  ++count;
}

std::optional<double> ClockWatch::Mean::take() {
  const std::optional<double> mean = count > 0 ? std::optional(sum / count) : std::nullopt;
  *this = {};
  return mean;
}

ClockWatch::ClockWatch(const Sources& sources)
    : frequency_files_(frequency_files(sources.processors)) {
  for (int gpu = 0; gpu < kMostGpus; ++gpu) {
    auto one = std::make_unique<record::Nvml>(gpu, sources.nvml);
    if (!one->found()) break;
    gpus_.push_back(std::move(one));
  }
}

void ClockWatch::look() {
  constexpr std::chrono::seconds kInterval{1};
  if (Clock::now() - looked_ < kInterval) return;
  looked_ = Clock::now();
  look_at_processors();
  look_at_gpus();
}

void ClockWatch::look_at_processors() {
  for (const fs::path& file : frequency_files_) {
    double kilohertz = 0;
    if (std::ifstream(file) >> kilohertz && kilohertz > 0) cpu_mhz_.add(kilohertz / 1000);
  }
}

void ClockWatch::look_at_gpus() {
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

verify::Clocks ClockWatch::take() {
  looked_ = {};
  return {.cpu_mhz = cpu_mhz_.take(),
          .gpu_mhz = gpu_mhz_.take(),
          .gpu_held_down = gpu_held_down_.take()};
}

}  // namespace sidestream::launch
