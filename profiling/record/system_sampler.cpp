#include "profiling/record/system_sampler.hpp"

#include <algorithm>

#include "profiling/ranges/system_counters.hpp"

namespace sidestream::record {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// Threads that do next to nothing are left out: a process has dozens of them.
constexpr double kLeastShareOfThread = 0.01;

class Rates {
 public:
  Rates(const SystemTotals& before, const SystemTotals& after)
      : before_(before),
        after_(after),
        seconds_(static_cast<double>(after.monotonic_ns - before.monotonic_ns) * 1e-9) {}

  void add(const char* name, std::vector<std::pair<std::string, double>> values) {
    samples_.push_back({after_.monotonic_ns, name, std::move(values)});
  }
  double mib_per_s(std::int64_t SystemTotals::*member) const {
    return static_cast<double>(after_.*member - before_.*member) / kMiB / seconds_;
  }

  void add_threads() {
    std::vector<std::pair<std::string, double>> running, waiting;
    double all_running = 0, all_waiting = 0;
    for (const auto& [id, now] : after_.threads) {
      const auto then = before_.threads.find(id);
      const ThreadTimes zero, &from = then == before_.threads.end() ? zero : then->second;
      const double runs = static_cast<double>(now.run_ns - from.run_ns) * 1e-9 / seconds_;
      const double waits = static_cast<double>(now.wait_ns - from.wait_ns) * 1e-9 / seconds_;
      all_running += runs;
      all_waiting += waits;
      const std::string name = now.name + " " + std::to_string(id);
      if (runs >= kLeastShareOfThread) running.emplace_back(name, runs * 100);
      if (waits >= kLeastShareOfThread) waiting.emplace_back(name, waits * 100);
    }
    add(ranges::kProcessCpu, {{"running", all_running * 100}, {"waiting", all_waiting * 100}});
    if (!running.empty()) add("thread running [%]", std::move(running));
    if (!waiting.empty()) add("thread waiting for a processor [%]", std::move(waiting));
  }

  void add_cores() {
    std::vector<std::pair<std::string, double>> busy;
    for (std::size_t core = 0; core < after_.core_busy_s.size(); ++core) {
      const double before = core < before_.core_busy_s.size() ? before_.core_busy_s[core] : 0;
      busy.emplace_back(std::to_string(core), percent(after_.core_busy_s[core] - before));
    }
    if (!busy.empty()) add("core busy [%]", std::move(busy));
  }

  void add_disks() {
    std::vector<std::pair<std::string, double>> busy;
    for (const auto& [disk, now_s] : after_.disk_busy_s) {
      const auto then = before_.disk_busy_s.find(disk);
      if (then != before_.disk_busy_s.end()) busy.emplace_back(disk, percent(now_s - then->second));
    }
    if (!busy.empty()) add(ranges::kDiskBusy, std::move(busy));
  }

  std::vector<SystemSample> take() { return std::move(samples_); }

 private:
  // Ticks of the files are coarser than a short interval.
  double percent(double busy_s) const { return std::clamp(busy_s / seconds_ * 100, 0.0, 100.0); }

  const SystemTotals& before_;
  const SystemTotals& after_;
  double seconds_;
  std::vector<SystemSample> samples_;
};

}  // namespace

std::vector<SystemSample> rates_between(const SystemTotals& before, const SystemTotals& after) {
  if (after.monotonic_ns <= before.monotonic_ns) return {};
  Rates rates(before, after);
  rates.add_threads();
  const double machine_s = after.machine_total_s - before.machine_total_s;
  if (machine_s > 0) {
    rates.add(ranges::kMachineCpu,
              {{"busy", (after.machine_busy_s - before.machine_busy_s) / machine_s * 100}});
  }
  rates.add_cores();
  rates.add("memory [MiB]", {{"process", static_cast<double>(after.resident_bytes) / kMiB},
                             {"available", static_cast<double>(after.available_bytes) / kMiB}});
  rates.add("process storage [MiB/s]",
            {{"read", rates.mib_per_s(&SystemTotals::process_read_bytes)},
             {"written", rates.mib_per_s(&SystemTotals::process_written_bytes)}});
  rates.add(ranges::kDiskBytes, {{"read", rates.mib_per_s(&SystemTotals::disk_read_bytes)},
                                 {"written", rates.mib_per_s(&SystemTotals::disk_written_bytes)}});
  rates.add_disks();
  rates.add("network [MiB/s]",
            {{"received", rates.mib_per_s(&SystemTotals::network_received_bytes)},
             {"sent", rates.mib_per_s(&SystemTotals::network_sent_bytes)},
             {"loopback", rates.mib_per_s(&SystemTotals::loopback_bytes)}});
  return rates.take();
}

SystemSampler::SystemSampler(const NvmlGpu& gpu) : last_(read_system()), nvml_(gpu) {}

std::vector<SystemSample> SystemSampler::sample() {
  SystemTotals now = read_system();
  std::vector<SystemSample> samples = rates_between(last_, now);
  last_ = std::move(now);
  for (SystemSample& of_gpu : nvml_.sample()) samples.push_back(std::move(of_gpu));
  return samples;
}

}  // namespace sidestream::record
