// The arguments of one call of an operator, taken apart.
#pragma once

#include <algorithm>
#include <optional>
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
  // Whether a list has tensors: one without any reads like a scalar.
  bool has_tensors(std::size_t place) const {
    return place < shapes.size() && std::any_of(shapes[place].begin(), shapes[place].end(),
                                                [](const Dims& one) { return !one.empty(); });
  }
};

// Nothing for an amount of work that is 0: shapes were missing then.
inline std::optional<double> if_any(double amount) {
  return amount > 0 ? std::optional(amount) : std::nullopt;
}

// Bytes of one element by the name of its C++ type; 0 for a name that is not known.
double size_of_type(std::string_view type);

// Bytes of all tensors of an argument; 0 when its type is not known.
double bytes_of(const OperatorInputs& in, std::size_t place);

// How many of the gradients of input and weight aten::convolution_backward makes, by its output
// mask: the first layer of a network needs one of them only. Both where no mask is on record.
int convolution_gradients(const OperatorInputs& in);

}  // namespace sidestream::analysis
