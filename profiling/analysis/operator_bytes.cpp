#include "profiling/analysis/operator_bytes.hpp"

#include <algorithm>
#include <array>

#include "core/base/real.hpp"
#include "profiling/analysis/element_wise.hpp"

namespace sidestream::analysis {
namespace {

using In = OperatorInputs;

using core::real;

double type_size(const In& in, std::size_t place) {
  return place < in.types.size() ? size_of_type(in.types[place]) : 0;
}

// What a product writes: its first matrix without the inner dimension times the columns of its
// second.
double product_result(const In& in, double flops, std::size_t left) {
  const Dims matrix = in.tensor(left);
  return matrix.empty() || matrix.back() == 0
             ? 0
             : flops / 2 / real(matrix.back()) * type_size(in, left);
}
double first_product(const In& in, double flops) { return product_result(in, flops, 0); }
// Whole numbers of 8 bits add up to some of 32.
double whole_product(const In& in, double flops) {
  constexpr double kResultBytes = 4;
  const double size = type_size(in, 0);
  return size > 0 ? product_result(in, flops, 0) / size * kResultBytes : 0;
}
double added_product(const In& in, double flops) { return product_result(in, flops, 1); }

// As large as one of the inputs, or as several.
template <std::size_t... places>
double like(const In& in, double) {
  return (bytes_of(in, places) + ...);
}

// The last dimension of x becomes that of the weight.
double rows_result(const Dims& x, const Dims& weight, double size) {
  return x.empty() || weight.empty() || x.back() == 0
             ? 0
             : element_count(x) / real(x.back()) * real(weight.back()) * size;
}
double fused_linear(const In& in, double) {
  return rows_result(in.tensor(0), in.tensor(1), type_size(in, 0));
}
double fused_mlp(const In& in, double) {
  return rows_result(in.tensor(0), in.tensor(2), type_size(in, 0));
}
// Queries, keys and values in, a third of it out.
double fused_attention(const In& in, double) { return bytes_of(in, 0) / 3; }

// [b, h, s, d] of the queries with the size of the values.
double attention(const In& in, double) {
  const Dims query = in.tensor(0), value = in.tensor(2);
  if (query.size() != 4 || value.size() != 4 || query[3] == 0) return 0;
  return bytes_of(in, 0) / real(query[3]) * real(value[3]);
}

// FLOPs are 2 x (elements of the result) x (elements of one filter).
double convolution(const In& in, double flops) {
  const Dims weight = in.tensor(1);
  if (weight.empty() || weight[0] == 0) return 0;
  const double filter = element_count(weight) / real(weight[0]);
  return filter > 0 ? flops / 2 / filter * type_size(in, 0) : 0;
}

// And the mask of what was kept, a byte each.
double dropout(const In& in, double) { return bytes_of(in, 0) + element_count(in.tensor(0)); }

struct Result {
  std::string_view name;
  double (*bytes)(const In& in, double flops);
};

// What norms write for a row or a channel (statistics, gradients of weight and bias) is small
// beside the tensor, and left out, here and in the lists below.
constexpr auto kResults = std::to_array<Result>({
    {"aten::mm", first_product},
    {"aten::bmm", first_product},
    {"aten::_int_mm", whole_product},
    {"aten::addmm", added_product},
    {"aten::_addmm_activation", added_product},
    {"aten::baddbmm", added_product},
    {"aten::convolution", convolution},
    {"aten::mkldnn_convolution", convolution},
    {"sidestream::product", first_product},
    {"sidestream::product_sum", like<2>},
    {"sidestream::bias_product", fused_linear},
    {"sidestream::linear", fused_linear},
    {"sidestream::linear_backward", like<1, 2>},
    {"sidestream::mlp", fused_mlp},
    {"sidestream::mlp_backward", like<1, 2, 3>},
    {"sidestream::attention", fused_attention},
    {"sidestream::head_loss_and_gradients", like<0, 1>},
    {"aten::native_dropout", dropout},
    // Only the gradient is on record. The input that was kept is read, and its gradient written.
    {"sidestream::norm", like<0>},
    {"sidestream::norm_backward", like<0, 0>},
    {"sidestream::add_norm", like<0, 1>},
    {"sidestream::add_norm_backward", like<0, 0>},
});

// One result as large as the first input.
constexpr std::array<std::string_view, 23> kLikeFirst = {"sidestream::attention_backward",
                                                         "aten::_softmax",
                                                         "aten::_log_softmax",
                                                         "aten::softmax",
                                                         "aten::log_softmax",
                                                         "aten::_softmax_backward_data",
                                                         "aten::_log_softmax_backward_data",
                                                         "aten::native_layer_norm",
                                                         "aten::layer_norm",
                                                         "aten::native_layer_norm_backward",
                                                         "aten::_fused_rms_norm",
                                                         "aten::_fused_rms_norm_backward",
                                                         "aten::native_batch_norm",
                                                         "aten::native_batch_norm_backward",
                                                         "aten::cudnn_batch_norm",
                                                         "aten::cudnn_batch_norm_backward",
                                                         "aten::miopen_batch_norm",
                                                         "aten::miopen_batch_norm_backward",
                                                         "aten::native_group_norm",
                                                         "aten::native_group_norm_backward",
                                                         "aten::native_dropout_backward",
                                                         "aten::cat",
                                                         "aten::clone"};

// What in-place operators write without reading it.
constexpr std::array<std::string_view, 10> kOverwrite = {
    "aten::copy_",          "aten::fill_",       "aten::zero_",    "aten::_foreach_copy_",
    "aten::_foreach_zero_", "aten::normal_",     "aten::uniform_", "aten::random_",
    "aten::bernoulli_",     "aten::exponential_"};

bool starts_attention(std::string_view name) {
  return name.starts_with("aten::_scaled_dot_product_");
}

// Of a table only the rows that are asked for are read. (The positions that our own adds are few.)
std::optional<double> embedding(const In& in) {
  const Dims table = in.tensor(0), indices = in.tensor(1);
  if (table.size() != 2 || type_size(in, 0) == 0) return std::nullopt;
  return bytes_of(in, 1) + 2 * element_count(indices) * real(table[1]) * type_size(in, 0);
}

// The gradient of the input reads the weight, that of the weight reads the input: each moves both
// sizes, besides the gradient of the result.
std::optional<double> convolution_backward(const In& in) {
  return if_any(bytes_of(in, 0) + convolution_gradients(in) * (bytes_of(in, 1) + bytes_of(in, 2)));
}

// Parameters, gradients and the optimizer's `states` are read, all but the gradients written.
std::optional<double> fused_optimizer(const In& in, std::size_t states) {
  double bytes = 0;
  for (std::size_t place = 0; place < 2 + states; ++place)
    if (in.has_tensors(place)) bytes += (place == 1 ? 1 : 2) * bytes_of(in, place);
  return if_any(bytes);
}

// Nothing where the result is not known.
std::optional<double> result_of(std::string_view name, const In& in, double flops) {
  const auto known = std::find_if(kResults.begin(), kResults.end(),
                                  [&](const Result& one) { return one.name == name; });
  if (known != kResults.end()) return if_any(known->bytes(in, flops));
  if (starts_attention(name))
    return if_any(name.ends_with("_backward") ? like<1, 2, 3>(in, flops) : attention(in, flops));
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of(kLikeFirst)) return if_any(like<0>(in, flops));
  if (is_one_of(kOverwrite)) return 0;
  // What works in place writes its first input.
  const bool in_place = name.starts_with("aten::") && name.ends_with("_");
  return in_place ? if_any(bytes_of(in, 0)) : std::nullopt;
}

std::optional<MovedBytes> with_result(const std::optional<double>& bytes) {
  return bytes ? std::optional(MovedBytes{.amount = *bytes}) : std::nullopt;
}

}  // namespace

double bytes_of(const In& in, std::size_t place) {
  if (place >= in.shapes.size()) return 0;
  double elements = 0;
  for (const Dims& tensor : in.shapes[place]) elements += element_count(tensor);
  return elements * type_size(in, place);
}

std::optional<MovedBytes> bytes_of_call(std::string_view name, const In& in,
                                        const std::optional<double>& flops) {
  if (name == "aten::embedding" || name == "sidestream::embed") return with_result(embedding(in));
  if (name == "aten::convolution_backward") return with_result(convolution_backward(in));
  if (name.starts_with("aten::_fused_adam")) return with_result(fused_optimizer(in, 2));
  if (name.starts_with("aten::_fused_sgd")) return with_result(fused_optimizer(in, 1));
  if (const ElementWise* const one = element_wise(name))
    return with_result(bytes_of_element_wise(name, *one, in));
  double bytes = 0;
  for (std::size_t place = 0; place < in.shapes.size(); ++place) bytes += bytes_of(in, place);
  if (bytes <= 0) return std::nullopt;
  const auto result = result_of(name, in, flops.value_or(0));
  return MovedBytes{.amount = bytes + result.value_or(0), .at_least = !result};
}

}  // namespace sidestream::analysis
