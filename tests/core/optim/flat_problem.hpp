// Parameters of awkward sizes in flat buffers, gradients in another order: what the device kernels
// work on.
#pragma once

#include <algorithm>
#include <vector>

#include "core/optim/device_kernels.hpp"
#include "tests/core/optim/random_range.hpp"

namespace sidestream::optim {

struct FlatProblem {
  std::vector<std::size_t> sizes = {1003, 2 * kSumBlock + 5, 7, 40000, 1};
  std::vector<std::size_t> weight_at, gradient_at;
  std::size_t elements = 0;
  std::vector<DevicePiece> pieces;
  std::vector<std::uint32_t> first_block = {0};
  std::vector<float> weights, first, second;
  std::vector<core::BFloat16> low;

  FlatProblem() {
    for (const std::size_t size : sizes) {
      weight_at.push_back(elements);
      elements += padded(size);
    }
    gradient_at.resize(sizes.size());
    std::size_t end = 0;
    for (std::size_t p = sizes.size(); p-- > 0;) {  // in reverse order
      gradient_at[p] = end;
      end += padded(sizes[p]);
    }
    for (std::size_t p = 0; p < sizes.size(); ++p) add_pieces(p);
    weights = normal_floats(elements, 1);
    first.resize(elements);
    second.resize(elements);
    low.resize(elements);
  }

  static std::size_t padded(std::size_t size) { return (size + 31) / 32 * 32; }

  // Random where parameters are, zero in the padding.
  std::vector<float> gradients(std::uint32_t seed) const {
    std::vector<float> all(elements);
    const auto values = normal_floats(elements, seed);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(gradient_at[p]), sizes[p],
                  all.begin() + static_cast<std::ptrdiff_t>(gradient_at[p]));
    }
    return all;
  }

  bool decays(std::size_t parameter) const { return parameter % 2 == 1; }

  AdamWCoefficients adamw(int step, bool decay, double scale = 1) const {
    return AdamWCoefficients::make({}, {.step = step,
                                        .lr = 1e-3 * step,
                                        .weight_decay = decay ? 0.1 : 0.0,
                                        .gradient_scale = scale});
  }

 private:
  void add_pieces(std::size_t p) {
    for (std::size_t first_element = 0; first_element < sizes[p]; first_element += kSumBlock) {
      pieces.push_back(
          {.weight = weight_at[p] + first_element,
           .low = weight_at[p] + first_element,
           .gradient = gradient_at[p] + first_element,
           .count = static_cast<std::uint32_t>(std::min(kSumBlock, sizes[p] - first_element)),
           .block = static_cast<std::uint32_t>(pieces.size()),
           .decays = decays(p) ? 1u : 0u,
           .parameter = static_cast<std::uint32_t>(p),
           .first = first_element});
    }
    first_block.push_back(static_cast<std::uint32_t>(pieces.size()));
  }
};

}  // namespace sidestream::optim
