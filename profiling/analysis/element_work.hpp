// FLOPs of what goes over elements: element-wise operators, norms, softmax, optimizers.
//
// An addition, a multiplication, a division, a comparison, a root and an exponential each count as
// one. They place an operation under a roofline, and are in no sum of a model's work: what trains a
// model are its products (operator_work.hpp).
#pragma once

#include <optional>
#include <string_view>

#include "profiling/analysis/operator_inputs.hpp"

namespace sidestream::analysis {

// Nothing for an operator that is not in the list.
std::optional<double> element_flops_of(std::string_view name, const OperatorInputs& in);

// By the error function: quotient, erf, sum, two products; backward adds the density: square, half,
// exponential, two products, sum, and the product with the gradient.
inline constexpr double kGeluFlops = 5;
inline constexpr double kGeluBackwardFlops = 12;

// A step of AdamW for one parameter: the decay 1, the moments 3 and 4, root, correction and eps 3,
// quotient, product and difference 3.
inline constexpr double kAdamwFlops = 14;

// A step of SGD: the decay 2, product and difference 2; momentum: two products and a sum.
inline constexpr double kSgdFlops = 4;
inline constexpr double kMomentumFlops = 3;

}  // namespace sidestream::analysis
