// All elements of all parameters, or this rank's part or slices of them, cut into pieces for
// threads. An update is independent element by element, so no cut changes a result.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

struct Piece {
  std::size_t parameter;
  std::size_t first;  // element
  std::size_t count;
  std::size_t first_in_state;  // the same element in a view of a FlatState

  // The piece of a whole parameter's elements.
  template <typename Element>
  std::span<Element> of(std::span<Element> elements) const {
    return elements.subspan(first, count);
  }
  // The same piece of what is kept of the parameter's state.
  template <typename Element>
  std::span<Element> in_state(std::span<Element> state) const {
    return state.subspan(first_in_state, count);
  }
};

class PieceList {
 public:
  explicit PieceList(const ParameterSpace& parameters);

  // Calls `work` for every piece, on LibTorch's threads.
  void for_each(const std::function<void(const Piece&)>& work) const;

 private:
  void add(std::size_t parameter, const OwnRange& range);

  std::vector<Piece> pieces_;
};

}  // namespace sidestream::parallel
