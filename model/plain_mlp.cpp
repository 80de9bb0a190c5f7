#include "model/plain_mlp.hpp"

#include <vector>

namespace sidestream::model::plain {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr const char* kGelu = "tanh";

Tensor rows_of(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// The derivatives of addmm, as autograd's own formulas have them (derivatives.yaml).
Tensor input_gradient(const Tensor& dy, const Tensor& weight, const Tensor& x) {
  return at::mm(rows_of(dy), weight.t()).view(x.sizes());
}
Tensor weight_gradient(const Tensor& x, const Tensor& dy) {
  return at::mm(rows_of(x).t(), rows_of(dy));
}
Tensor bias_gradient(const Tensor& dy, const Tensor& bias) {
  return at::sum_to(rows_of(dy), bias.sizes());
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const MadeAgain& x_again) {
    context->save_for_backward({x_again.make ? Tensor() : x, weight, bias});
    keep(context, x_again);
    return linear(x, {.weight = weight, .bias = bias});
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor x = take_operand(context, saved[0]), &dy = grads[0];
    tensor_list result(4);
    if (context->needs_input_grad(0)) result[0] = input_gradient(dy, saved[1], x);
    result[1] = weight_gradient(x, dy);
    result[2] = bias_gradient(dy, saved[2]);
    return result;
  }
};

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& in_weight,
                        const Tensor& in_bias, const Tensor& out_weight, const Tensor& out_bias,
                        const MadeAgain& x_again, MlpKeeps keeps) {
    const Tensor before = linear(x, {.weight = in_weight, .bias = in_bias});
    context->save_for_backward({x_again.make ? Tensor() : x,
                                keeps == MlpKeeps::kInput ? Tensor() : before, in_weight, in_bias,
                                out_weight, out_bias});
    keep(context, x_again);
    return linear(at::gelu(before, kGelu), {.weight = out_weight, .bias = out_bias});
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor x = take_operand(context, saved[0]), &dy = grads[0];
    const Tensor &in_weight = saved[2], &in_bias = saved[3], &out_weight = saved[4],
                 &out_bias = saved[5];
    const Tensor before =
        saved[1].defined() ? saved[1] : linear(x, {.weight = in_weight, .bias = in_bias});
    tensor_list result(7);
    result[4] = bias_gradient(dy, out_bias);
    result[3] = weight_gradient(at::gelu(before, kGelu), dy);
    const Tensor before_grad =
        at::gelu_backward(input_gradient(dy, out_weight, before), before, kGelu);
    result[2] = bias_gradient(before_grad, in_bias);
    result[1] = weight_gradient(x, before_grad);
    if (context->needs_input_grad(0)) result[0] = input_gradient(before_grad, in_weight, x);
    return result;
  }
};

}  // namespace

Tensor linear(const Tensor& x, const LinearWeights& weights) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weights.weight.size(1);
  return at::addmm(weights.bias, rows_of(x), weights.weight).view(shape);
}

Tensor linear_made_again(const Operand& x, const LinearWeights& weights) {
  return LinearFunction::apply(x.value, weights.weight, weights.bias, x.again);
}

Tensor mlp_made_again(const Operand& x, const LinearWeights& in, const LinearWeights& out,
                      MlpKeeps keeps) {
  return MlpFunction::apply(x.value, in.weight, in.bias, out.weight, out.bias, x.again, keeps);
}

}  // namespace sidestream::model::plain
