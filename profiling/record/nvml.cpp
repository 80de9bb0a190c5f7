#include "profiling/record/nvml.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "profiling/ranges/system_counters.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::record {
namespace {

// What is needed of nvml.h.
using Device = NvmlLibrary::Device;
struct Utilisation {
  unsigned gpu = 0, memory = 0;
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
enum ClockKind { kGraphics = 0, kMemoryClock = 2 };
enum TemperatureSensor { kCore = 0 };

// Why clocks are below what they could be: bits of nvmlClocksEventReasons. Idle is no reason.
struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr std::array<Reason, 6> kReasons = {{{0x4, "power cap"},
                                             {0x8, "hardware slowdown"},
                                             {0x10, "sync boost"},
                                             {0x20, "heat, by software"},
                                             {0x40, "heat, by hardware"},
                                             {0x80, "power brake"}}};

// Nothing to do with the load: power, heat, the board.
constexpr unsigned long long kHeldDown = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

std::vector<std::pair<std::string, double>> held_down(unsigned long long reasons) {
  const auto is_set = [&](unsigned long long bits) { return (reasons & bits) != 0 ? 1.0 : 0.0; };
  std::vector<std::pair<std::string, double>> values = {
      {ranges::kHeldDownByPowerOrHeat, is_set(kHeldDown)}};
  for (const Reason& one : kReasons) values.emplace_back(one.name, is_set(one.bit));
  return values;
}

}  // namespace

// What this version of the library cannot tell stays null.
struct Nvml::Library {
  std::unique_ptr<NvmlLibrary> nvml;
  Device device = nvml->device();
  int (*utilisation)(Device, Utilisation*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  std::optional<unsigned long long> first_energy_mj = {};

  explicit Library(std::unique_ptr<NvmlLibrary> opened) : nvml(std::move(opened)) {
    nvml->find(utilisation, "nvmlDeviceGetUtilizationRates");
    nvml->find(memory, "nvmlDeviceGetMemoryInfo");
    nvml->find(power, "nvmlDeviceGetPowerUsage");
    nvml->find(temperature, "nvmlDeviceGetTemperature");
    nvml->find(clock, "nvmlDeviceGetClockInfo");
    nvml->find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    nvml->find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  }
};

Nvml::Nvml(const NvmlGpu& gpu, const std::string& library) {
  if (auto opened = NvmlLibrary::open(gpu, library))
    library_ = std::make_unique<Library>(std::move(opened));
}

Nvml::~Nvml() = default;

std::vector<SystemSample> Nvml::sample() {
  if (library_ == nullptr) return {};
  const std::int64_t now = monotonic_ns();
  std::vector<SystemSample> samples;
  const auto add = [&](const char* name, std::vector<std::pair<std::string, double>> values) {
    samples.push_back({now, name, std::move(values)});
  };
  Library& of = *library_;
  if (Utilisation use; of.utilisation != nullptr && of.utilisation(of.device, &use) == kNvmlSuccess)
    add(ranges::kGpuUse, {{"kernels", use.gpu}, {"memory", use.memory}});
  if (Memory memory; of.memory != nullptr && of.memory(of.device, &memory) == kNvmlSuccess)
    add("gpu memory [MiB]", {{"used", static_cast<double>(memory.used) / (1 << 20)}});
  if (unsigned watt = 0; of.power != nullptr && of.power(of.device, &watt) == kNvmlSuccess)
    add("gpu power [W]", {{"board", watt / 1000.0}});
  // Counts from when the driver was loaded; here from the first sample.
  unsigned long long energy_mj = 0;
  if (of.energy != nullptr && of.energy(of.device, &energy_mj) == kNvmlSuccess) {
    if (!of.first_energy_mj) of.first_energy_mj = energy_mj;
    add(ranges::kGpuEnergy,
        {{"board", static_cast<double>(energy_mj - *of.first_energy_mj) / 1000}});
  }
  unsigned degrees = 0;
  if (of.temperature != nullptr && of.temperature(of.device, kCore, &degrees) == kNvmlSuccess)
    add("gpu temperature [C]", {{"core", degrees}});
  unsigned core = 0, memory_clock = 0;
  if (of.clock != nullptr && of.clock(of.device, kGraphics, &core) == kNvmlSuccess &&
      of.clock(of.device, kMemoryClock, &memory_clock) == kNvmlSuccess)
    add(ranges::kGpuClock, {{"core", core}, {"memory", memory_clock}});
  unsigned long long reasons = 0;
  if (of.reasons != nullptr && of.reasons(of.device, &reasons) == kNvmlSuccess)
    add(ranges::kGpuHeldDown, held_down(reasons));
  return samples;
}

}  // namespace sidestream::record
