#include "profiling/analysis/element_work.hpp"

#include <algorithm>
#include <array>

namespace sidestream::analysis {
namespace {

struct PerElement {
  std::string_view name;  // without the "_" of what works in place
  double flops;
};

// Norms in training, for each element: mean 1, variance 3 (difference, square, sum), normalising 1,
// weight and bias 2; backward: the normalised value 2, the gradient times the weight 1, its two
// sums 3, the gradient of the input 4, of the weight 2, of the bias 1. Without a mean: square, sum,
// product, weight; backward: the normalised value 1, the gradient times the weight 1, its sum 2,
// the gradient of the input 3, of the weight 2. Softmax: maximum, difference, exponential, sum,
// quotient; backward: product, sum, difference, product. GELU by the error function: quotient, erf,
// sum, two products; backward adds the density: square, half, exponential, two products, sum. SiLU:
// negation, exponential, sum, quotient.
constexpr std::array<PerElement, 53> kPerElement = {{
    {"aten::native_layer_norm", 7},
    {"aten::native_layer_norm_backward", 13},
    {"aten::_fused_rms_norm", 4},
    {"aten::_fused_rms_norm_backward", 9},
    {"aten::native_batch_norm", 7},
    {"aten::native_batch_norm_backward", 13},
    {"aten::cudnn_batch_norm", 7},
    {"aten::cudnn_batch_norm_backward", 13},
    {"aten::miopen_batch_norm", 7},
    {"aten::miopen_batch_norm_backward", 13},
    {"aten::native_group_norm", 7},
    {"aten::native_group_norm_backward", 13},
    {"aten::_softmax", 5},
    {"aten::_log_softmax", 5},
    {"aten::_softmax_backward_data", 4},
    {"aten::_log_softmax_backward_data", 4},
    {"aten::gelu", 5},
    {"aten::gelu_backward", 12},
    {"aten::silu", 4},
    {"aten::silu_backward", 8},
    {"aten::sigmoid", 3},
    {"aten::sigmoid_backward", 3},
    {"aten::tanh", 1},
    {"aten::tanh_backward", 3},
    {"aten::relu", 1},
    {"aten::threshold_backward", 1},
    {"aten::native_dropout", 2},
    {"aten::native_dropout_backward", 2},
    {"aten::add", 1},
    {"aten::sub", 1},
    {"aten::mul", 1},
    {"aten::div", 1},
    {"aten::neg", 1},
    {"aten::exp", 1},
    {"aten::log", 1},
    {"aten::sqrt", 1},
    {"aten::rsqrt", 1},
    {"aten::pow", 1},
    {"aten::addcmul", 3},
    {"aten::addcdiv", 3},
    {"aten::lerp", 3},
    {"aten::maximum", 1},
    {"aten::minimum", 1},
    {"aten::clamp", 2},
    {"aten::sum", 1},
    {"aten::mean", 1},
    {"aten::max", 1},
    {"aten::linalg_vector_norm", 2},
    {"aten::_foreach_add", 1},
    {"aten::_foreach_mul", 1},
    {"aten::_foreach_lerp", 3},
    {"aten::_foreach_addcmul", 3},
    {"aten::_foreach_addcdiv", 3},
}};

// Of the largest argument: the others are stretched to it. A list counts with all of its tensors.
double elements_of(const OperatorInputs& in) {
  double most = 0;
  for (const ArgumentShapes& argument : in.shapes) {
    double all = 0;
    for (const Dims& tensor : argument) all += element_count(tensor);
    most = std::max(most, all);
  }
  return most;
}

}  // namespace

std::optional<double> element_flops_of(std::string_view name, const OperatorInputs& in) {
  if (name.starts_with("aten::_fused_adam")) return kAdamwFlops * elements_of(in);
  if (name.starts_with("aten::_fused_sgd"))
    return (kSgdFlops + (in.has_tensors(2) ? kMomentumFlops : 0)) * elements_of(in);
  const std::string_view plain = name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
  const auto* found = std::find_if(kPerElement.begin(), kPerElement.end(),
                                   [&](const PerElement& one) { return one.name == plain; });
  const double elements = found == kPerElement.end() ? 0 : elements_of(in);
  return elements > 0 ? std::optional(found->flops * elements) : std::nullopt;
}

}  // namespace sidestream::analysis
