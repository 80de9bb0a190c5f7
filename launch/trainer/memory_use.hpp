// What a run was planned to take at its peak and what it took: of the first rank, on its GPU or of
// its host.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sidestream::launch {

struct MemoryUse {
  bool on_gpu = false;
  // What the process had taken before there was a model, and the plan for the rest: weights,
  // gradients, optimizer state, activations. Not in it: what operators and libraries allocate by
  // themselves, pages of data files, a checkpoint's copy, recordings.
  std::int64_t planned_bytes = 0;
  std::optional<std::int64_t> peak_bytes = {};  // as lines of metrics have it

  // Measured over planned.
  std::optional<double> ratio() const;

  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

nlohmann::json to_json(const MemoryUse& use);
// Nothing for a null or missing value: records of before there was one.
std::optional<MemoryUse> memory_use_from(const nlohmann::json& value);

// "memory of rank 0: 1.20 GiB of its host at the peak, 1.25 GiB were planned (0.96 of it)"
std::string describe(const MemoryUse& use);

}  // namespace sidestream::launch
