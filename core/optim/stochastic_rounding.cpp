#include "core/optim/stochastic_rounding.hpp"

#include <algorithm>
#include <cstddef>

#include "core/optim/check.hpp"

namespace sidestream::optim {
namespace {

SIDESTREAM_VECTORIZED void round_all(const float* __restrict from, core::BFloat16* __restrict to,
                                     std::size_t n, const RoundingPlace place, RoundingHalf half) {
  // A shift and no choice in the loop.
  const std::uint32_t shift = half == RoundingHalf::kFirstMoment ? 16 : 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t draw = rounding_draw(place, static_cast<std::uint32_t>(i));
    to[i] = round_stochastically(from[i], (draw >> shift) & 0xFFFFu);
  }
}

}  // namespace

void round_stochastically(std::span<const float> from, std::span<core::BFloat16> to,
                          const RoundingPlace& place, RoundingHalf half) {
  require_length("rounded moments", from.size(), to.size());
  constexpr std::size_t kAtOnce = std::size_t{1} << 31;  // numbers of 32 bits within
  for (std::size_t first = 0; first < from.size(); first += kAtOnce) {
    round_all(from.data() + first, to.data() + first, std::min(kAtOnce, from.size() - first),
              place.from(first), half);
  }
}

}  // namespace sidestream::optim
