// The arguments of one call of an operator, taken apart.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "profiling/analysis/input_shapes.hpp"

namespace sidestream::analysis {

struct OperatorInputs {
  std::vector<ArgumentShapes> shapes;
  std::vector<std::string_view> types;
  std::vector<std::string_view> values;

  // The tensor at this place; empty when there is none.
  Dims tensor(std::size_t place) const {
    return place < shapes.size() && shapes[place].size() == 1 ? shapes[place].front() : Dims{};
  }
  std::string_view value(std::size_t place) const {
    return place < values.size() ? values[place] : std::string_view{};
  }
};

// Bytes of one element by the name of its C++ type; 0 for a name that is not known.
double size_of_type(std::string_view type);

// Bytes of all tensors of an argument; 0 when its type is not known.
double bytes_of(const OperatorInputs& in, std::size_t place);

}  // namespace sidestream::analysis
