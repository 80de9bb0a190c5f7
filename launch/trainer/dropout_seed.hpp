// Seeds of dropout masks as a pure function of where in a run they are drawn: a resumed run draws
// the same ones without stored state.
#pragma once

#include <cstdint>

namespace sidestream::launch {

struct DropoutPlace {
  std::int64_t step = 1;
  int micro_step = 0;
  int grad_accumulation = 1;
  int rank = 0;
  int ranks = 1;
};

// splitmix64: neighbouring inputs give unrelated seeds.
inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

inline std::uint64_t dropout_seed(std::uint64_t seed, const DropoutPlace& place) {
  const std::int64_t micro_steps = place.step * place.grad_accumulation + place.micro_step;
  return mixed(seed ^ mixed(static_cast<std::uint64_t>(micro_steps * place.ranks + place.rank)));
}

}  // namespace sidestream::launch
