// Seeds of dropout masks as a pure function of where in a run they are drawn: a resumed run draws
// the same ones without stored state, and none a second time on other ranks or with other
// micro-steps.
#pragma once

#include <cstdint>

#include "core/base/random_bits.hpp"

namespace sidestream::launch {

struct DropoutPlace {
  std::int64_t step = 1;
  int micro_step = 0;
  int rank = 0;
};

// Neighbouring places have unrelated seeds. Part after part, for a number of all three would need
// those of ranks and micro-steps, which may change when a run is resumed.
inline std::uint64_t dropout_seed(std::uint64_t seed, const DropoutPlace& place) {
  const std::uint64_t of_step = core::mix_bits(seed, static_cast<std::uint64_t>(place.step));
  const std::uint64_t of_micro_step =
      core::mix_bits(of_step, static_cast<std::uint64_t>(place.micro_step));
  return core::mix_bits(of_micro_step, static_cast<std::uint64_t>(place.rank));
}

}  // namespace sidestream::launch
