#include "profiling/analysis/element_wise.hpp"

#include <algorithm>
#include <array>

#include "profiling/analysis/element_work.hpp"

namespace sidestream::analysis {
namespace {

using In = OperatorInputs;

// A call of the mathematical library, such as a sine, is one as an exponential is. SiLU: negation,
// exponential, sum, quotient. ELU: comparison, exponential, difference, product. Softplus: product,
// comparison, exponential, logarithm, quotient; backward: product, comparison, exponential,
// product, sum, quotient. Mish: exponential, logarithm, tanh, product; backward: tanh and sigmoid 3
// each, and six products and sums. Hard sigmoid: sum, two comparisons, quotient; the hard swish has
// a product more. Hypotenuse: two squares, sum, root. What computes with integers and bits, and
// what only chooses, has none.
constexpr auto kElementWise = std::to_array<ElementWise>({
    {"abs", 1},
    {"acos", 1},
    {"acosh", 1},
    {"asin", 1},
    {"asinh", 1},
    {"atan", 1},
    {"atanh", 1},
    {"ceil", 1},
    {"cos", 1},
    {"cosh", 1},
    {"erf", 1},
    {"erfc", 1},
    {"erfinv", 1},
    {"exp", 1},
    {"exp2", 1},
    {"expm1", 1},
    {"floor", 1},
    {"frac", 2},
    {"log", 1},
    {"log10", 1},
    {"log1p", 1},
    {"log2", 1},
    {"logit", 3},
    {"nan_to_num", 3},
    {"neg", 1},
    {"reciprocal", 1},
    {"round", 1},
    {"rsqrt", 1},
    {"sgn", 1},
    {"sign", 1},
    {"sin", 1},
    {"sinh", 1},
    {"sqrt", 1},
    {"square", 1},
    {"tan", 1},
    {"trunc", 1},
    {"bitwise_not"},
    {"_to_copy"},
    // activations
    {"elu", 4},
    {"gelu", kGeluFlops},
    {"hardsigmoid", 4},
    {"hardswish", 5},
    {"hardtanh", 2},
    {"leaky_relu", 2},
    {"log_sigmoid_forward", 6},
    {"mish", 4},
    {"_prelu_kernel", 2},
    {"relu", 1},
    {"selu", 4},
    {"sigmoid", 3},
    {"silu", 4},
    {"softplus", 5},
    {"tanh", 1},
    {"threshold", 1},
    // and their backward
    {"elu_backward", 4},
    {"gelu_backward", kGeluBackwardFlops},
    {"hardsigmoid_backward", 3},
    {"hardswish_backward", 5},
    {"hardtanh_backward", 2},
    {"leaky_relu_backward", 2},
    {"logit_backward", 3},
    {"mish_backward", 12},
    {"sigmoid_backward", 3},
    {"silu_backward", 8},
    {"softplus_backward", 6},
    {"tanh_backward", 3},
    {"threshold_backward", 1},
    // of several tensors
    {"add", 1},
    {"addcdiv", 3},
    {"addcmul", 3},
    {"atan2", 1},
    {"bitwise_and"},
    {"bitwise_or"},
    {"bitwise_xor"},
    {"clamp", 2},
    {"clamp_max", 1},
    {"clamp_min", 1},
    {"copysign"},
    {"div", 1},
    {"floor_divide", 1},
    {"fmax", 1},
    {"fmin", 1},
    {"fmod", 1},
    {"hypot", 4},
    {"lerp", 3},
    {"logaddexp", 5},
    {"masked_fill"},
    {"maximum", 1},
    {"minimum", 1},
    {"mul", 1},
    {"pow", 1},
    {"remainder", 1},
    {"rsub", 1},
    {"sub", 1},
    {"where"},
    {"xlogy", 2},
    // a bool each
    {"eq", 1, Writes::kBool},
    {"ge", 1, Writes::kBool},
    {"gt", 1, Writes::kBool},
    {"isinf", 1, Writes::kBool},
    {"isnan", 1, Writes::kBool},
    {"le", 1, Writes::kBool},
    {"logical_and", 0, Writes::kBool},
    {"logical_not", 0, Writes::kBool},
    {"logical_or", 0, Writes::kBool},
    {"logical_xor", 0, Writes::kBool},
    {"lt", 1, Writes::kBool},
    {"ne", 1, Writes::kBool},
});

bool works_in_place(std::string_view name) { return name.ends_with('_'); }

// By NumPy's rule. False where the shapes do not fit.
bool stretch(Dims& shape, const Dims& other) {
  if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& mine = shape[shape.size() - other.size() + i];
    if (mine != other[i] && mine != 1 && other[i] != 1) return false;
    if (mine == 1) mine = other[i];
  }
  return true;
}

// The tensor of an argument that meets the one at this place of a list.
Dims tensor_at(const ArgumentShapes& argument, std::size_t place) {
  if (argument.size() == 1) return argument.front();
  return place < argument.size() ? argument[place] : Dims{};
}

// bool, integers, floating-point, complex numbers: the higher kind decides a result's type.
int kind_of_type(std::string_view type) {
  if (type == "bool") return 0;
  if (type.find("complex") != std::string_view::npos) return 3;
  const bool real = type == "float" || type == "double" || type.starts_with("c10::");
  return real ? 2 : 1;
}

bool has_dimensions(const In& in, std::size_t place) {
  return std::any_of(in.shapes[place].begin(), in.shapes[place].end(),
                     [](const Dims& one) { return !one.empty(); });
}

double size_at(const In& in, std::size_t place) {
  return place < in.types.size() ? size_of_type(in.types[place]) : 0;
}

// PyTorch's promotion: of the highest kind the largest type, of tensors with dimensions before
// those without. 0 where a type is not known.
double promoted_size(const In& in) {
  std::array<int, 3> best = {-1, 0, 0};  // kind, whether with dimensions, size
  for (std::size_t place = 0; place < in.shapes.size(); ++place) {
    const bool spread = has_dimensions(in, place);
    const int size = static_cast<int>(size_at(in, place));
    if (size == 0 && spread) return 0;
    if (size > 0) best = std::max(best, {kind_of_type(in.types[place]), spread ? 1 : 0, size});
  }
  return best[2];
}

}  // namespace

const ElementWise* element_wise(std::string_view name) {
  constexpr std::string_view kSpace = "aten::", kLists = "_foreach_";
  if (!name.starts_with(kSpace)) return nullptr;
  name.remove_prefix(kSpace.size());
  if (name.starts_with(kLists)) name.remove_prefix(kLists.size());
  if (works_in_place(name)) name.remove_suffix(1);
  const auto* found = std::find_if(kElementWise.begin(), kElementWise.end(),
                                   [&](const ElementWise& one) { return one.name == name; });
  return found == kElementWise.end() ? nullptr : found;
}

std::optional<double> elements_of_result(std::string_view name, const In& in) {
  std::size_t tensors = 0;
  for (const ArgumentShapes& argument : in.shapes) tensors = std::max(tensors, argument.size());
  double elements = 0;
  for (std::size_t place = 0; place < tensors; ++place) {
    Dims shape;
    for (const ArgumentShapes& argument : in.shapes) {
      if (!stretch(shape, tensor_at(argument, place))) return std::nullopt;
    }
    // What is written in place keeps its shape.
    const bool fits = !works_in_place(name) || shape == tensor_at(in.shapes.front(), place);
    if (!fits) return std::nullopt;
    elements += element_count(shape);
  }
  return elements;
}

std::optional<double> bytes_of_element_wise(std::string_view name, const ElementWise& one,
                                            const In& in) {
  const auto elements = elements_of_result(name, in);
  const double promoted = promoted_size(in);
  if (!elements || *elements <= 0 || promoted <= 0) return std::nullopt;
  double bytes = 0;
  for (std::size_t place = 0; place < in.shapes.size(); ++place) bytes += bytes_of(in, place);
  if (works_in_place(name)) return bytes + bytes_of(in, 0);
  return bytes + *elements * (one.writes == Writes::kBool ? 1 : promoted);
}

}  // namespace sidestream::analysis
