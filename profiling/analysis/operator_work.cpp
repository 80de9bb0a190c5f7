#include "profiling/analysis/operator_work.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/real.hpp"
#include "profiling/analysis/element_work.hpp"
#include "profiling/analysis/operator_bytes.hpp"

namespace sidestream::analysis {
namespace {

using Flops = std::optional<double>;

using Inputs = OperatorInputs;

using core::real;

using Product = std::optional<MatrixProduct>;

Flops flops_of(const Product& one) {
  if (!one) return std::nullopt;
  return 2 * one->batch * real(one->rows) * real(one->inner) * real(one->columns);
}

// [..., m, k] x [..., k, n]
Product product(const Dims& left, const Dims& right) {
  if (left.size() < 2 || right.size() != left.size()) return std::nullopt;
  const std::int64_t rows = left[left.size() - 2], inner = left.back();
  if (right[right.size() - 2] != inner) return std::nullopt;
  return MatrixProduct{.batch = element_count({left.begin(), left.end() - 2}),
                       .rows = rows,
                       .inner = inner,
                       .columns = right.back()};
}

Product plain_product(const Inputs& in) { return product(in.tensor(0), in.tensor(1)); }
Product added_product(const Inputs& in) { return product(in.tensor(1), in.tensor(2)); }

// Forward computes q k^T and its product with v: 2 b h s_q s_k (d_k + d_v).
Flops attention_of(const Dims& query, const Dims& key, const Dims& value) {
  if (query.size() != 4 || key.size() != 4 || value.size() != 4) return std::nullopt;
  if (query[3] != key[3] || key[2] != value[2]) return std::nullopt;
  return 2 * real(query[0]) * real(query[1]) * real(query[2]) * real(key[2]) *
         real(query[3] + value[3]);
}

Flops attention(const Inputs& in) { return attention_of(in.tensor(0), in.tensor(1), in.tensor(2)); }

// The gradient comes first. Five products of the forward's two sizes: the scores again, and the
// gradients of value, scores, query and key.
Flops attention_backward(const Inputs& in) {
  const Dims query = in.tensor(1), key = in.tensor(2), value = in.tensor(3);
  if (!attention_of(query, key, value)) return std::nullopt;
  const double pairs = 2 * real(query[0]) * real(query[1]) * real(query[2]) * real(key[2]);
  return pairs * (3 * real(query[3]) + 2 * real(value[3]));
}

// Every element of the output (of the input, when transposed) meets a kernel over the channels of
// its group.
double convolution_of(const Dims& spread, const Dims& weight) {
  return 2 * element_count(spread) * element_count({weight.begin() + 1, weight.end()});
}

// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, ...)
Flops convolution(const Inputs& in) {
  const Dims input = in.tensor(0), weight = in.tensor(1);
  if (input.size() < 3 || weight.size() != input.size()) return std::nullopt;
  if (in.value(6) == "True") return convolution_of(input, weight);
  const Dims stride = integers_in(in.value(3)), padding = integers_in(in.value(4)),
             dilation = integers_in(in.value(5));
  if (stride.empty() || padding.empty() || dilation.empty()) return std::nullopt;
  Dims output = {input[0], weight[0]};
  for (std::size_t i = 2; i < input.size(); ++i) {
    const auto at = [&](const Dims& list) { return list[std::min(i - 2, list.size() - 1)]; };
    if (at(stride) <= 0) return std::nullopt;
    const std::int64_t span = at(dilation) * (weight[i] - 1) + 1;
    output.push_back((input[i] + 2 * at(padding) - span) / at(stride) + 1);
  }
  return convolution_of(output, weight);
}

// aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
// transposed, output_padding, groups, output_mask): one convolution for each gradient.
Flops convolution_gradient_flops(const Inputs& in) {
  const Dims gradient = in.tensor(0), input = in.tensor(1), weight = in.tensor(2);
  if (gradient.size() < 3 || weight.size() != gradient.size()) return std::nullopt;
  const double one = convolution_of(in.value(7) == "True" ? input : gradient, weight);
  return one * convolution_gradients(in);
}

// Sidestream's own operators (model/fused). Rows of x times a matrix [k, n]: all of x's extents but
// the last are rows.
Product rows_product(const Dims& x, std::int64_t inner, std::int64_t columns) {
  if (x.empty() || x.back() != inner) return std::nullopt;
  const double rows = element_count({x.begin(), x.end() - 1});
  return MatrixProduct{.rows = static_cast<std::int64_t>(rows), .inner = inner, .columns = columns};
}

Product rows_product(const Dims& x, const Dims& weight) {
  return weight.size() == 2 ? rows_product(x, weight[0], weight[1]) : std::nullopt;
}

Flops times(double factor, const Flops& flops) {
  return flops ? Flops(factor * *flops) : std::nullopt;
}

Product fused_linear(const Inputs& in) { return rows_product(in.tensor(0), in.tensor(1)); }

// (gradient, x, weight): one product for the gradient of x and one for that of the weight.
Product fused_linear_backward(const Inputs& in) { return rows_product(in.tensor(1), in.tensor(2)); }

Flops mlp_of(const Dims& x, const Dims& in_weight, const Dims& out_weight) {
  const Product first = rows_product(x, in_weight);
  if (!first || out_weight.size() != 2 || out_weight[0] != in_weight[1]) return std::nullopt;
  return 2 * real(first->rows) * real(first->columns) * real(first->inner + out_weight[1]);
}

Flops fused_mlp(const Inputs& in) { return mlp_of(in.tensor(0), in.tensor(1), in.tensor(2)); }

Flops fused_mlp_backward(const Inputs& in) {
  return times(2, mlp_of(in.tensor(1), in.tensor(2), in.tensor(3)));
}

// Queries, keys and values as [b, t, 3 c]: 2 b t t (c + c), as above with h d = c; backward has
// five such products instead of two.
Flops fused_attention(const Inputs& in) {
  const Dims qkv = in.tensor(0);
  if (qkv.size() != 3) return std::nullopt;
  return 4 * element_count(qkv) / 3 * real(qkv[1]);
}

Flops fused_attention_backward(const Inputs& in) { return times(2.5, fused_attention(in)); }

// x times the transpose of [v, c].
Product transposed_product(const Inputs& in) {
  const Dims weight = in.tensor(1);
  return weight.size() == 2 ? rows_product(in.tensor(0), weight[1], weight[0]) : std::nullopt;
}

// Either counts, or is a product, and others as large as it.
struct Counter {
  std::string_view name;
  Flops (*flops)(const Inputs&) = nullptr;
  Product (*product)(const Inputs&) = nullptr;
  double products = 1;
};

constexpr std::array<Counter, 33> kCounters = {{
    {.name = "aten::mm", .product = plain_product},
    {.name = "aten::bmm", .product = plain_product},
    {.name = "aten::_scaled_mm", .product = plain_product},
    {.name = "aten::_int_mm", .product = plain_product},
    {.name = "aten::addmm", .product = added_product},
    {.name = "aten::_addmm_activation", .product = added_product},
    {.name = "aten::baddbmm", .product = added_product},
    {.name = "aten::addbmm", .product = added_product},
    {.name = "aten::convolution", .flops = convolution},
    {.name = "aten::convolution_backward", .flops = convolution_gradient_flops},
    {.name = "aten::_scaled_dot_product_flash_attention", .flops = attention},
    {.name = "aten::_scaled_dot_product_efficient_attention", .flops = attention},
    {.name = "aten::_scaled_dot_product_cudnn_attention", .flops = attention},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu", .flops = attention},
    {.name = "aten::_scaled_dot_product_fused_attention_overrideable", .flops = attention},
    {.name = "aten::_scaled_dot_product_flash_attention_backward", .flops = attention_backward},
    {.name = "aten::_scaled_dot_product_efficient_attention_backward", .flops = attention_backward},
    {.name = "aten::_scaled_dot_product_cudnn_attention_backward", .flops = attention_backward},
    {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     .flops = attention_backward},
    {.name = "aten::_scaled_dot_product_fused_attention_overrideable_backward",
     .flops = attention_backward},
    {.name = "sidestream::linear", .product = fused_linear},
    {.name = "sidestream::linear_backward", .product = fused_linear_backward, .products = 2},
    {.name = "sidestream::mlp", .flops = fused_mlp, .product = fused_linear},
    {.name = "sidestream::mlp_backward",
     .flops = fused_mlp_backward,
     .product = fused_linear_backward},
    {.name = "sidestream::product", .product = plain_product},
    {.name = "sidestream::product_sum", .product = plain_product},
    {.name = "sidestream::bias_product", .product = fused_linear},
    {.name = "sidestream::attention", .flops = fused_attention},
    {.name = "sidestream::attention_backward", .flops = fused_attention_backward},
    {.name = "sidestream::head_loss", .product = transposed_product},
    {.name = "sidestream::head_loss_and_gradients", .product = transposed_product, .products = 3},
    {.name = "aten::mv",
     .flops = [](const Inputs& in) -> Flops { return 2 * element_count(in.tensor(0)); }},
    {.name = "aten::dot",
     .flops = [](const Inputs& in) -> Flops { return 2 * element_count(in.tensor(0)); }},
}};

const Counter* counter_of(std::string_view name) {
  const auto* found = std::find_if(kCounters.begin(), kCounters.end(),
                                   [&](const Counter& one) { return one.name == name; });
  return found == kCounters.end() ? nullptr : found;
}

// Operators that hand out another view of a tensor, or only pass their arguments on.
constexpr std::array<std::string_view, 27> kMoveNothing = {"aten::view",
                                                           "aten::_unsafe_view",
                                                           "aten::reshape",
                                                           "aten::transpose",
                                                           "aten::t",
                                                           "aten::permute",
                                                           "aten::expand",
                                                           "aten::as_strided",
                                                           "aten::slice",
                                                           "aten::select",
                                                           "aten::narrow",
                                                           "aten::split",
                                                           "aten::unsqueeze",
                                                           "aten::squeeze",
                                                           "aten::detach",
                                                           "aten::alias",
                                                           "aten::empty",
                                                           "aten::empty_like",
                                                           "aten::empty_strided",
                                                           "aten::resize_",
                                                           "aten::set_",
                                                           "aten::linear",
                                                           "aten::matmul",
                                                           "aten::scaled_dot_product_attention",
                                                           "aten::conv2d",
                                                           "aten::_convolution",
                                                           "aten::to"};

struct TypeSize {
  std::string_view name;
  double bytes;
};

// Names of C++ types as the profiler writes them.
constexpr std::array<TypeSize, 14> kTypeSizes = {{{"float", 4},
                                                  {"double", 8},
                                                  {"c10::BFloat16", 2},
                                                  {"c10::Half", 2},
                                                  {"long", 8},
                                                  {"long int", 8},
                                                  {"int", 4},
                                                  {"short", 2},
                                                  {"signed char", 1},
                                                  {"unsigned char", 1},
                                                  {"bool", 1},
                                                  {"c10::Float8_e4m3fn", 1},
                                                  {"c10::Float8_e5m2", 1},
                                                  {"c10::complex<float>", 8}}};

// A shell: what works are the operators that it calls. "AddmmBackward0",
// "torch::autograd::AccumulateGrad".
bool is_autograd_node(std::string_view name) {
  if (name.find("autograd::") != std::string_view::npos) return true;
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t end = name.find_last_not_of(kDigits) + 1;
  return end < name.size() && name.substr(0, end).ends_with("Backward");
}

}  // namespace

double size_of_type(std::string_view type) {
  for (const TypeSize& one : kTypeSizes) {
    if (one.name == type) return one.bytes;
  }
  return 0;
}

int convolution_gradients(const OperatorInputs& in) {
  const std::vector<std::string_view> mask = list_elements(in.value(10));
  const auto wanted = [&](std::size_t place) {
    return mask.size() <= place || mask[place] == "True";
  };
  return (wanted(0) ? 1 : 0) + (wanted(1) ? 1 : 0);
}

bool is_matrix_product(std::string_view name) {
  const Counter* const counter = counter_of(name);
  return counter != nullptr && counter->product != nullptr;
}

std::optional<MatrixProduct> matrix_product_of(const OperatorCall& call) {
  const Counter* const counter = counter_of(call.name);
  if (counter == nullptr || counter->product == nullptr) return std::nullopt;
  return counter->product(
      {parse_shapes(call.shapes), list_elements(call.types), list_elements(call.values)});
}

OperatorWork work_of(const OperatorCall& call) {
  if (call.shapes.empty() || is_autograd_node(call.name)) return {};
  if (std::find(kMoveNothing.begin(), kMoveNothing.end(), call.name) != kMoveNothing.end())
    return {};
  const Inputs in{parse_shapes(call.shapes), list_elements(call.types), list_elements(call.values)};
  OperatorWork work;
  const Counter* const counter = counter_of(call.name);
  if (counter != nullptr && counter->flops != nullptr) {
    work.flops = counter->flops(in);
  } else if (counter != nullptr) {
    work.flops = times(counter->products, flops_of(counter->product(in)));
  }
  if (!work.flops) work.element_flops = element_flops_of(call.name, in);
  if (const auto moved = bytes_of_call(call.name, in, work.flops)) {
    work.bytes = moved->amount;
    work.bytes_at_least = moved->at_least;
  }
  if (work.flops) work.beside_products = work_beside_products(call.name, in);
  return work;
}

}  // namespace sidestream::analysis
