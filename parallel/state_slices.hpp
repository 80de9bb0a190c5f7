// How optimizer state in host memory is cut into the slices in which an update streams it through a
// device. No LibTorch.
#pragma once

#include <cstddef>
#include <vector>

#include "core/optim/device_kernels.hpp"

namespace sidestream::parallel {

// A contiguous range of every flat state: whole pieces, one behind another.
struct StateSlice {
  std::size_t begin = 0;  // element of the flat states
  std::size_t end = 0;
  std::size_t first_piece = 0;  // of SlicePlan::pieces
  std::size_t pieces = 0;
  std::size_t group = 0;  // of the pieces that were given

  std::size_t elements() const noexcept { return end - begin; }
};

struct SlicePlan {
  // Of all slices, in the order of the state; DevicePiece::weight counts from the slice's begin.
  std::vector<optim::DevicePiece> pieces;
  std::vector<StateSlice> slices;

  std::size_t most_elements() const noexcept;  // of a slice; 0: there is none
};

// groups: DevicePiece::weight is an element of the flat states. No slice has pieces of two groups,
// and none has more than most_elements but a single piece that has more.
SlicePlan cut_into_slices(std::vector<std::vector<optim::DevicePiece>> groups,
                          std::size_t most_elements);

// 4 Mi elements: master weights and two moments in fp32 are 48 MiB, a millisecond of a PCIe 5.0
// link.
inline constexpr std::size_t kStateSliceElements = std::size_t{4} << 20;

// Bytes of the two buffers of which one is computed on while the other one is copied: `total`
// elements of state of `element_bytes` in all kinds together.
std::size_t slice_buffer_bytes(std::size_t total, std::size_t element_bytes);

}  // namespace sidestream::parallel
