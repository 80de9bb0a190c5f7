#include "core/optim/sgd.hpp"

#include "core/base/error.hpp"
#include "core/base/vectorize.hpp"
#include "core/optim/check.hpp"
#include "core/optim/reduce.hpp"

namespace sidestream::optim {
namespace {

template <typename Gradient>
SIDESTREAM_INLINE float total_gradient(float weight, Gradient gradient, const SgdCoefficients& c) {
  return static_cast<float>(gradient) * c.gradient_scale + weight * c.weight_decay;
}

// Clones for several processors cannot be templates, hence one function per kind of gradient; fp16,
// which trains on GPUs, has templates.
template <typename Gradient>
void plain(float* __restrict w, const Gradient* __restrict g, std::size_t n, SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= c.lr * total_gradient(w[i], g[i], c);
}

SIDESTREAM_VECTORIZED void plain(float* __restrict w, const float* __restrict g, std::size_t n,
                                 SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= c.lr * total_gradient(w[i], g[i], c);
}

SIDESTREAM_VECTORIZED void plain(float* __restrict w, const core::BFloat16* __restrict g,
                                 std::size_t n, SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= c.lr * total_gradient(w[i], g[i], c);
}

template <typename Gradient, typename Moment>
struct Pointers {
  float* __restrict weights;
  const Gradient* __restrict gradients;
  Moment* __restrict buffer;
  RoundingPlace rounding;
};

template <typename Gradient, typename Moment>
SIDESTREAM_INLINE void update_element(const Pointers<Gradient, Moment>& p, std::size_t i,
                                      const SgdCoefficients& c) {
  const float now = static_cast<float>(p.buffer[i]) * c.momentum +
                    total_gradient(p.weights[i], p.gradients[i], c);
  const std::uint32_t draw = rounding_draw(p.rounding, static_cast<std::uint32_t>(i));
  p.buffer[i] = kept_moment<Moment>(now, draw, RoundingHalf::kFirstMoment);
  p.weights[i] -= c.lr * now;
}

template <typename Gradient, typename Moment>
void with_momentum(const Pointers<Gradient, Moment>& p, std::size_t n, const SgdCoefficients& c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void with_momentum(const Pointers<float, float> p, std::size_t n,
                                         const SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void with_momentum(const Pointers<core::BFloat16, float> p, std::size_t n,
                                         const SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void with_momentum(const Pointers<float, core::BFloat16> p, std::size_t n,
                                         const SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

SIDESTREAM_VECTORIZED void with_momentum(const Pointers<core::BFloat16, core::BFloat16> p,
                                         std::size_t n, const SgdCoefficients c) {
  for (std::size_t i = 0; i < n; ++i) update_element(p, i, c);
}

void round_to(std::span<const float> weights, std::span<core::BFloat16> copy) {
  round_to_bfloat16(weights, copy);
}

void round_to(std::span<const float> weights, std::span<core::Float16> copy) {
  for (std::size_t i = 0; i < weights.size(); ++i) copy[i] = core::Float16(weights[i]);
}

template <typename Gradient, typename Moment, typename Low>
void update_block(const SgdRange<Gradient, Moment, Low>& range, std::size_t first, std::size_t n,
                  const SgdCoefficients& c) {
  float* weights = range.weights.data() + first;
  const Gradient* gradients = range.gradients.data() + first;
  if (range.momentum_buffer.empty()) {
    plain(weights, gradients, n, c);
  } else {
    with_momentum(Pointers<Gradient, Moment>{.weights = weights,
                                             .gradients = gradients,
                                             .buffer = range.momentum_buffer.data() + first,
                                             .rounding = range.rounding.from(first)},
                  n, c);
  }
  if (!range.low_precision.empty())
    round_to(std::span<const float>{weights, n}, range.low_precision.subspan(first, n));
}

}  // namespace

template <typename Gradient, typename Moment, typename Low>
void sgd_update(const SgdRange<Gradient, Moment, Low>& range, const SgdCoefficients& c) {
  const std::size_t n = range.weights.size();
  require_length("gradients", n, range.gradients.size());
  if (c.momentum != 0 || !range.momentum_buffer.empty()) {
    require_length("momentum values", n, range.momentum_buffer.size());
  }
  if (!range.low_precision.empty())
    require_length("low-precision values", n, range.low_precision.size());
  // Blocks that stay in the cache: the low-precision copy then reads no memory a second time.
  constexpr std::size_t kBlock = 4096;
  for (std::size_t first = 0; first < n; first += kBlock) {
    update_block(range, first, std::min(kBlock, n - first), c);
  }
}

void SgdConfig::validate() const {
  require_in_range("--momentum", momentum, {.low = 0, .high = 1, .high_end = End::kOpen});
  require_in_range("--weight-decay", weight_decay, {.low = 0, .high = 1e3});
}

#define SIDESTREAM_SGD(Gradient, Moment, Low) \
  template void sgd_update(const SgdRange<Gradient, Moment, Low>&, const SgdCoefficients&)
SIDESTREAM_SGD(float, float, core::BFloat16);
SIDESTREAM_SGD(float, core::BFloat16, core::BFloat16);
SIDESTREAM_SGD(core::BFloat16, float, core::BFloat16);
SIDESTREAM_SGD(core::BFloat16, core::BFloat16, core::BFloat16);
SIDESTREAM_SGD(core::Float16, float, core::BFloat16);
SIDESTREAM_SGD(core::Float16, core::BFloat16, core::BFloat16);
SIDESTREAM_SGD(float, float, core::Float16);
SIDESTREAM_SGD(float, core::BFloat16, core::Float16);
SIDESTREAM_SGD(core::BFloat16, float, core::Float16);
SIDESTREAM_SGD(core::BFloat16, core::BFloat16, core::Float16);
SIDESTREAM_SGD(core::Float16, float, core::Float16);
SIDESTREAM_SGD(core::Float16, core::BFloat16, core::Float16);
#undef SIDESTREAM_SGD

}  // namespace sidestream::optim
