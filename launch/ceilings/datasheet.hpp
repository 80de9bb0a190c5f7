// Peaks of GPUs from their datasheets: the roof where nothing was measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sidestream::launch {

struct DatasheetPeaks {
  std::map<std::string, double> flops_per_s;  // "fp32", "tf32", "bf16", "fp16"; dense
  double memory_bytes_per_s = 0;
};

// Nothing for a device that is not in the list: better no figure than a guess. FLOP/s are those of
// gpu_peak.hpp, fp16 as fast as bf16. Memory, in GB/s, by NVIDIA's datasheets: H100 SXM 3350, PCIe
// 2000; H200 4800; A100 80 GB 2039 (SXM; PCIe 1935), 40 GB 1555; L40S 864; L4 300; RTX 4090 1008.
// Of an A100 whose name does not say how much memory it has, `memory_bytes` does (0: not known).
std::optional<DatasheetPeaks> datasheet_peaks(std::string_view device_name,
                                              std::uint64_t memory_bytes = 0);

}  // namespace sidestream::launch
