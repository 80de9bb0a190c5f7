#include "model/device/mlp.hpp"

#include <utility>

#include "model/device/bias_gradient.hpp"
#include "model/device/geometry.hpp"
#include "model/device/linear.hpp"
#include "model/device/multiply.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::MlpOptions;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr const char *kInGradient = "in_gradient", *kOutGradient = "out_gradient";

void gelu_into(const LaunchQueue& queue, const Tensor& before, const Tensor& activation) {
  queue.launch(&DeviceKernels::gelu_forward,
               {.dtype = dtype_of(before),
                .count = before.numel(),
                .before = before.const_data_ptr(),
                .activation = activation.mutable_data_ptr()},
               before);
}

// What goes into GELU and what comes out of it, [rows, H].
struct Hidden {
  Tensor before, activation;
};

Tensor before_gelu(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in) {
  return multiply_with_bias(queue, rows_of(x), in);
}

Hidden hidden_of(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in) {
  const Tensor before = before_gelu(queue, x, in), activation = at::empty_like(before);
  gelu_into(queue, before, activation);
  return {before, activation};
}

// Where nothing is going to be differentiated.
Tensor activation_of(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in) {
  const Tensor hidden = before_gelu(queue, x, in);
  gelu_into(queue, hidden, hidden);
  return hidden;
}

// As it was kept, or made again. The kernel of GELU's backward makes the activation itself.
Hidden hidden_again(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in,
                    const Hidden& kept) {
  return kept.before.defined() ? kept : Hidden{before_gelu(queue, x, in), Tensor()};
}

struct HiddenGradient {
  Tensor grad, activation, bias_grad;
};

// grad: of the activation, [rows, H]; its memory is used. The activation is computed where it was
// not kept.
HiddenGradient through_gelu(const LaunchQueue& queue, const Tensor& grad, Hidden hidden) {
  const std::int64_t rows = grad.size(0), width = grad.size(1);
  const Tensor partial =
      at::empty({row_parts(rows, width), width}, grad.options().dtype(at::kFloat));
  const Tensor computed = hidden.activation.defined() ? Tensor() : at::empty_like(grad);
  queue.launch(&DeviceKernels::gelu_backward,
               {.dtype = dtype_of(grad),
                .rows = rows,
                .width = width,
                .before = hidden.before.const_data_ptr(),
                .gradient = grad.mutable_data_ptr(),
                .activation = computed.defined() ? computed.mutable_data_ptr() : nullptr,
                .bias_partial = partial.mutable_data_ptr<float>()},
               grad);
  return {grad, computed.defined() ? computed : hidden.activation,
          sum_of_parts(queue, partial, grad)};
}

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& in_weight,
                        const Tensor& in_bias, const Tensor& out_weight, const Tensor& out_bias,
                        const MadeAgain& x_again, const MlpOptions& options,
                        const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::mlp", Inputs({x, in_weight, out_weight}), node_number());
    keep_queue(context, queue);
    model::keep(context, x_again);
    fused::keep_place(context, kInGradient, options.gradients.in_weight);
    fused::keep_place(context, kOutGradient, options.gradients.out_weight);
    const MlpKeeps keeps = options.keeps;
    const Hidden hidden = hidden_of(*queue, x, {in_weight, in_bias});
    context->save_for_backward(
        {x_again.make ? Tensor() : x, keeps == MlpKeeps::kInput ? Tensor() : hidden.before,
         in_weight, out_weight, in_bias, keeps == MlpKeeps::kAll ? hidden.activation : Tensor()});
    return shaped_like(multiply_with_bias(*queue, hidden.activation, {out_weight, out_bias}), x,
                       out_weight.size(1));
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &in_weight = saved[2], &out_weight = saved[3], &in_bias = saved[4];
    const Tensor x = take_operand(context, saved[0]);
    const LaunchQueue& queue = *kept_queue(context);
    Hidden hidden = hidden_again(queue, x, {in_weight, in_bias}, {saved[1], saved[5]});
    RECORD_FUNCTION("sidestream::mlp_backward", Inputs({grads[0], x, in_weight, out_weight}));
    const Tensor dy = rows_of(grads[0]);
    tensor_list result(8);
    HiddenGradient gradient =
        through_gelu(queue, multiply(queue, dy, out_weight.t()), std::move(hidden));
    LinearGradients out = linear_gradients(queue, fused::take_place(context, kOutGradient).memory,
                                           gradient.activation, dy);
    gradient.activation.reset();
    result[3] = std::move(out.weight);
    result[4] = std::move(out.bias);
    result[2] = gradient.bias_grad;
    result[1] = product_into(queue, fused::take_place(context, kInGradient).memory, rows_of(x).t(),
                             gradient.grad);
    if (context->needs_input_grad(0))
      result[0] = shaped_like(multiply(queue, gradient.grad, in_weight.t()), x, x.size(-1));
    return result;
  }
};

}  // namespace

Tensor mlp(const LaunchQueuePtr& queue, const Operand& operand, const LinearWeights& in,
           const LinearWeights& out, const MlpOptions& options) {
  const Tensor& x = operand.value;
  if (at::GradMode::is_enabled()) {
    return MlpFunction::apply(x, in.weight, in.bias, out.weight, out.bias, operand.again, options,
                              queue);
  }
  const Tensor activation = activation_of(*queue, x, in);
  return shaped_like(multiply_with_bias(*queue, activation, out), x, out.weight.size(1));
}

}  // namespace sidestream::model::device
