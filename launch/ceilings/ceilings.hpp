// What this machine's processor can do at most, as measured: the denominators of MFU and of
// rooflines on CPU.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sidestream::launch {

struct Ceilings {
  std::string processor;        // model name of /proc/cpuinfo
  int cores = 0;                // cores used by the measurement
  double fp32_flops_per_s = 0;  // matrix products
  double bf16_flops_per_s = 0;
  double memory_bytes_per_s = 0;  // read + write of a copy larger than the caches
};

// Best of repeated products and copies over about `seconds`, on all intra-op threads of this
// process.
Ceilings measure_ceilings(double seconds);

// Where measurements of this user are kept: $XDG_CACHE_HOME/sidestream/ceilings.json.
std::filesystem::path ceilings_file();

void save_ceilings(const Ceilings& ceilings, const std::filesystem::path& file);

// The stored measurement of this processor; empty when there is none or when the file cannot be
// read.
std::optional<Ceilings> load_ceilings(const std::filesystem::path& file);

std::string processor_name();

}  // namespace sidestream::launch
