// All elements of all parameters, or this rank's part of them, cut into pieces for threads. An
// update is independent element by element, so no cut changes a result.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <torch/torch.h>

#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

struct Piece {
  std::size_t parameter;
  std::size_t first;  // element
  std::size_t count;

  // The piece of a whole parameter's elements.
  template <typename Element>
  std::span<Element> of(std::span<Element> elements) const {
    return elements.subspan(first, count);
  }
};

class PieceList {
 public:
  explicit PieceList(const ParameterSpace& parameters);

  // Calls `work` for every piece, on LibTorch's threads.
  void for_each(const std::function<void(const Piece&)>& work) const;

 private:
  std::vector<Piece> pieces_;
};

}  // namespace sidestream::parallel
