#include "model/device/mlp.hpp"

#include "model/device/bias_gradient.hpp"
#include "model/device/geometry.hpp"
#include "model/device/linear.hpp"
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

struct HiddenGradient {
  Tensor grad, activation, bias_grad;
};

// grad: of the activation, [rows, H]; its memory is used. activation: computed where it was not
// kept.
HiddenGradient through_gelu(const LaunchQueue& queue, const Tensor& grad, const Tensor& before,
                            const Tensor& kept_activation) {
  const std::int64_t rows = grad.size(0), width = grad.size(1);
  const Tensor partial =
      at::empty({row_parts(rows, width), width}, grad.options().dtype(at::kFloat));
  const Tensor computed = kept_activation.defined() ? Tensor() : at::empty_like(grad);
  queue.launch(&DeviceKernels::gelu_backward,
               {.dtype = dtype_of(grad),
                .rows = rows,
                .width = width,
                .before = before.const_data_ptr(),
                .gradient = grad.mutable_data_ptr(),
                .activation = computed.defined() ? computed.mutable_data_ptr() : nullptr,
                .bias_partial = partial.mutable_data_ptr<float>()},
               grad);
  return {grad, computed.defined() ? computed : kept_activation,
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
    const Tensor before = at::addmm(in_bias, rows_of(x), in_weight);
    const Tensor activation = at::empty_like(before);
    gelu_into(*queue, before, activation);
    context->save_for_backward(
        {x_again.make ? Tensor() : x, options.keeps == MlpKeeps::kInput ? Tensor() : before,
         in_weight, out_weight, in_bias, options.keeps == MlpKeeps::kAll ? activation : Tensor()});
    return shaped_like(at::addmm(out_bias, activation, out_weight), x, out_weight.size(1));
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &in_weight = saved[2], &out_weight = saved[3], &in_bias = saved[4];
    const Tensor x = take_operand(context, saved[0]);
    const Tensor before = saved[1].defined() ? saved[1] : at::addmm(in_bias, rows_of(x), in_weight);
    RECORD_FUNCTION("sidestream::mlp_backward", Inputs({grads[0], x, in_weight, out_weight}));
    const Tensor dy = rows_of(grads[0]);
    tensor_list result(8);
    const LaunchQueue& queue = *kept_queue(context);
    HiddenGradient hidden = through_gelu(queue, at::mm(dy, out_weight.t()), before, saved[5]);
    result[4] = bias_gradient(queue, dy);
    result[3] = product_into(fused::take_place(context, kOutGradient), hidden.activation.t(), dy);
    hidden.activation.reset();
    result[2] = hidden.bias_grad;
    result[1] = product_into(fused::take_place(context, kInGradient), rows_of(x).t(), hidden.grad);
    if (context->needs_input_grad(0))
      result[0] = shaped_like(at::mm(hidden.grad, in_weight.t()), x, x.size(-1));
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
  const Tensor hidden = at::addmm(in.bias, rows_of(x), in.weight);
  gelu_into(*queue, hidden, hidden);
  return shaped_like(at::addmm(out.bias, hidden, out.weight), x, out.weight.size(1));
}

}  // namespace sidestream::model::device
