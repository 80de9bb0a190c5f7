#include "profiling/analysis/element_work.hpp"

#include <algorithm>
#include <array>

#include "profiling/analysis/element_wise.hpp"

namespace sidestream::analysis {
namespace {

struct PerElement {
  std::string_view name;
  double flops;
};

// Norms in training, for each element: mean 1, variance 3 (difference, square, sum), normalising 1,
// weight and bias 2; backward: the normalised value 2, the gradient times the weight 1, its two
// sums 3, the gradient of the input 4, of the weight 2, of the bias 1. Without a mean: square, sum,
// product, weight; backward: the normalised value 1, the gradient times the weight 1, its sum 2,
// the gradient of the input 3, of the weight 2. Sidestream's add_norm has a sum more. Softmax:
// maximum, difference, exponential, sum, quotient; backward: product, sum, difference, product.
constexpr auto kPerElement = std::to_array<PerElement>({
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
    {"sidestream::norm", 7},
    {"sidestream::norm_backward", 13},
    {"sidestream::add_norm", 8},
    {"sidestream::add_norm_backward", 13},
    {"aten::_softmax", 5},
    {"aten::_log_softmax", 5},
    {"aten::_softmax_backward_data", 4},
    {"aten::_log_softmax_backward_data", 4},
    {"aten::native_dropout", 2},
    {"aten::native_dropout_backward", 2},
    {"aten::sum", 1},
    {"aten::mean", 1},
    {"aten::max", 1},
    {"aten::linalg_vector_norm", 2},
});

// Of the largest argument. A list counts with all of its tensors.
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
  if (const ElementWise* const one = element_wise(name))
    return if_any(one->flops * elements_of_result(name, in).value_or(0));
  const auto* found = std::find_if(kPerElement.begin(), kPerElement.end(),
                                   [&](const PerElement& one) { return one.name == name; });
  return found == kPerElement.end() ? std::nullopt : if_any(found->flops * elements_of(in));
}

}  // namespace sidestream::analysis
