#include "launch/ceilings/datasheet.hpp"

#include "launch/device/gpu_peak.hpp"

namespace sidestream::launch {
namespace {

struct Memory {
  std::string_view model;  // the first that fits counts
  double gb_per_s;
};

constexpr double kSmallA100 = 1555;  // GB/s with 40 GB

constexpr Memory kMemories[] = {{"H100 NVL", 3900},
                                {"H100 PCIe", 2000},
                                {"H200", 4800},
                                {"H100", 3350},
                                {"A100-SXM4-40GB", kSmallA100},
                                {"A100-PCIE-40GB", kSmallA100},
                                {"A100 80GB PCIe", 1935},
                                {"A100", 2039},
                                {"L40S", 864},
                                {"L4", 300},
                                {"4090", 1008}};

}  // namespace

std::optional<DatasheetPeaks> datasheet_peaks(std::string_view device_name,
                                              std::uint64_t memory_bytes) {
  constexpr std::uint64_t kMoreThan40Gb = std::uint64_t{50} * 1000 * 1000 * 1000;
  const bool small = memory_bytes > 0 && memory_bytes < kMoreThan40Gb;
  const auto fp32 = gpu_peak_flops_per_s(device_name, Precision::kFp32);
  for (const Memory& memory : kMemories) {
    if (!fp32 || !names_model(device_name, memory.model)) continue;
    const bool is_small_a100 = small && memory.model == "A100";
    return DatasheetPeaks{
        .flops_per_s = {{"fp32", *fp32},
                        {"tf32", *gpu_peak_flops_per_s(device_name, Precision::kTf32)},
                        {"bf16", *gpu_peak_flops_per_s(device_name, Precision::kBf16)},
                        {"fp16", *gpu_peak_flops_per_s(device_name, Precision::kFp16)}},
        .memory_bytes_per_s = (is_small_a100 ? kSmallA100 : memory.gb_per_s) * 1e9};
  }
  return std::nullopt;
}

}  // namespace sidestream::launch
