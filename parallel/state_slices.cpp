#include "parallel/state_slices.hpp"

#include <algorithm>

namespace sidestream::parallel {
namespace {

void cut_group(std::vector<optim::DevicePiece> pieces, std::size_t group, std::size_t most_elements,
               SlicePlan& plan) {
  std::sort(pieces.begin(), pieces.end(),
            [](const auto& left, const auto& right) { return left.weight < right.weight; });
  bool open = false;  // the last slice may take more
  for (optim::DevicePiece piece : pieces) {
    const std::size_t end = piece.weight + piece.count;
    if (!open || end - plan.slices.back().begin > most_elements) {
      plan.slices.push_back(
          {.begin = piece.weight, .first_piece = plan.pieces.size(), .group = group});
      open = true;
    }
    StateSlice& slice = plan.slices.back();
    slice.end = end;
    ++slice.pieces;
    piece.weight -= slice.begin;
    plan.pieces.push_back(piece);
  }
}

}  // namespace

std::size_t SlicePlan::most_elements() const noexcept {
  std::size_t most = 0;
  for (const StateSlice& slice : slices) most = std::max(most, slice.elements());
  return most;
}

SlicePlan cut_into_slices(std::vector<std::vector<optim::DevicePiece>> groups,
                          std::size_t most_elements) {
  SlicePlan plan;
  for (std::size_t group = 0; group < groups.size(); ++group)
    cut_group(std::move(groups[group]), group, most_elements, plan);
  return plan;
}

std::size_t slice_buffer_bytes(std::size_t total, std::size_t element_bytes) {
  return 2 * std::min(total, kStateSliceElements) * element_bytes;
}

}  // namespace sidestream::parallel
