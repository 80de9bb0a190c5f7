#include "launch/verify/machine_watch.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "profiling/ranges/system_counters.hpp"
#include "profiling/record/proc_files.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostGpus = 16;
constexpr double kBusyPercent = 10;  // an idle GPU clocks down, and says nothing of the run

std::map<std::string, fs::path> frequency_files(const fs::path& processors) {
  std::map<std::string, fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(processors, error)) {
    const fs::path file = entry.path() / "cpufreq" / "scaling_cur_freq";
    if (fs::exists(file, error)) files[entry.path().filename().string()] = file;
  }
  return files;
}

// Of each processor, from lines as "cpu3 user nice system idle iowait irq softirq steal" (proc(5)).
std::map<std::string, double> busy_ticks(const fs::path& processor_times) {
  std::map<std::string, double> busy;
  std::ifstream input(processor_times);
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft_irq = 0, steal = 0;
    if (!(words >> name >> user >> nice >> system) || !name.starts_with("cpu")) continue;
    words >> idle >> waiting >> irq >> soft_irq >> steal;
    busy[name] = user + nice + system + irq + soft_irq + steal;
  }
  return busy;
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

void MachineWatch::Mean::add(double value, double of_weight) {
  sum += value * of_weight;
  weight += of_weight;
}

std::optional<double> MachineWatch::Mean::take() {
  const std::optional<double> mean = weight > 0 ? std::optional(sum / weight) : std::nullopt;
  *this = {};
  return mean;
}

MachineWatch::MachineWatch(const Sources& sources)
    : frequency_files_(frequency_files(sources.processors)),
      processors_before_(busy_ticks(sources.processor_times)),
      processor_times_(sources.processor_times),
      before_(spent()) {
  for (unsigned gpu = 0; gpu < kMostGpus; ++gpu) {
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
  const auto now = busy_ticks(processor_times_);
  for (const auto& [name, file] : frequency_files_) {
    const auto after = now.find(name);
    const auto before = processors_before_.find(name);
    if (after == now.end() || before == processors_before_.end()) continue;
    const double ticks = after->second - before->second;
    double kilohertz = 0;
    if (ticks > 0 && std::ifstream(file) >> kilohertz && kilohertz > 0)
      cpu_mhz_.add(kilohertz / 1000, ticks);
  }
  processors_before_ = now;
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
