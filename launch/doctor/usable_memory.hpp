// How much memory there is for ranks, and what each takes at least.
#pragma once

#include <algorithm>
#include <cstdint>

#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

// LibTorch and MPI alone, before any model.
constexpr std::int64_t kSmallestRankBytes = std::int64_t{512} << 20;

// What the control group leaves counts as well as what the machine has.
inline std::int64_t usable_bytes(const MemoryFacts& memory) {
  if (memory.limit_bytes == kUnlimited) return memory.available_bytes;
  const std::int64_t left = std::max<std::int64_t>(0, memory.limit_bytes - memory.limit_used_bytes);
  return std::min(memory.available_bytes, left);
}

}  // namespace sidestream::launch::doctor
