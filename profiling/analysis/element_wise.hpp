// Operators that go element by element: aten::add and its kind, with what they compute for an
// element and what they write. The one list of them: FLOPs (element_work.hpp) and bytes
// (operator_bytes.hpp) come of it.
//
// The result has the shape that NumPy's rule gives: extents are compared from the last one on, and
// one of 1 is stretched to the other. Where they do not fit, nothing is known.
#pragma once

#include <optional>
#include <string_view>

#include "profiling/analysis/operator_inputs.hpp"

namespace sidestream::analysis {

enum class Writes { kTypeOfInputs, kBool };

struct ElementWise {
  std::string_view name;  // without "aten::", without the "_" of what works in place
  double flops = 0;       // for an element; 0: it computes nothing, or no floating-point number
  Writes writes = Writes::kTypeOfInputs;
};

// "aten::add", "aten::add_", "aten::_foreach_add" are all the row of "add"; nullptr for operators
// that are not in the list.
const ElementWise* element_wise(std::string_view name);

// Elements of the result; of lists, of all their tensors.
std::optional<double> elements_of_result(std::string_view name, const OperatorInputs& in);

// All inputs once, and the result. Nothing where the type of a tensor is not known.
std::optional<double> bytes_of_element_wise(std::string_view name, const ElementWise& one,
                                            const OperatorInputs& in);

}  // namespace sidestream::analysis
