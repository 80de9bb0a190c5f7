// Seeds of dropout masks as a pure function of where in a run they are drawn: a resumed run draws
// the same ones without stored state.
#pragma once

#include <cstdint>

#include "core/base/random_bits.hpp"

namespace sidestream::launch {

struct DropoutPlace {
  std::int64_t step = 1;
  int micro_step = 0;
  int grad_accumulation = 1;
  int rank = 0;
  int ranks = 1;
};

// Neighbouring places have unrelated seeds.
inline std::uint64_t dropout_seed(std::uint64_t seed, const DropoutPlace& place) {
  const std::int64_t micro_steps = place.step * place.grad_accumulation + place.micro_step;
  const std::int64_t draw = micro_steps * place.ranks + place.rank;
  return core::mix_bits(static_cast<std::uint64_t>(draw), seed);
}

}  // namespace sidestream::launch
