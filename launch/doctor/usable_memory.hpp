// How much memory there is for ranks, and what each takes at least.
#pragma once

#include <cstdint>

#include "core/base/host_memory.hpp"
#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

// LibTorch and MPI alone, before any model.
constexpr std::int64_t kSmallestRankBytes = std::int64_t{512} << 20;

// What the control group leaves counts as well as what the machine has.
inline std::int64_t usable_bytes(const MemoryFacts& memory) {
  return core::HostMemory{.available_bytes = memory.available_bytes,
                          .limit_bytes = memory.limit_bytes,
                          .limit_used_bytes = memory.limit_used_bytes}
      .usable_bytes();
}

}  // namespace sidestream::launch::doctor
