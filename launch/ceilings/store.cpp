#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::filesystem::path ceilings_file() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(cache) / "sidestream/ceilings.json";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache/sidestream/ceilings.json";
}

void save_ceilings(const Ceilings& ceilings, const std::filesystem::path& file) {
  std::filesystem::create_directories(file.parent_path());
  const nlohmann::json json = {{"processor", ceilings.processor},
                               {"cores", ceilings.cores},
                               {"fp32_flops_per_s", ceilings.fp32_flops_per_s},
                               {"bf16_flops_per_s", ceilings.bf16_flops_per_s},
                               {"memory_bytes_per_s", ceilings.memory_bytes_per_s}};
  core::write_file_atomically(file, json.dump(2) + "\n");
}

std::optional<Ceilings> load_ceilings(const std::filesystem::path& file) {
  try {
    const nlohmann::json json = nlohmann::json::parse(core::read_file(file, 1 << 16));
    const Ceilings stored{.processor = json.at("processor"),
                          .cores = json.at("cores"),
                          .fp32_flops_per_s = json.at("fp32_flops_per_s"),
                          .bf16_flops_per_s = json.at("bf16_flops_per_s"),
                          .memory_bytes_per_s = json.at("memory_bytes_per_s")};
    if (stored.processor != processor_name() || stored.cores <= 0) return std::nullopt;
    return stored;
  } catch (const std::exception&) {
    return std::nullopt;  // a cache, not an input: a measurement that cannot be read is one that
                          // was not taken
  }
}

}  // namespace sidestream::launch
