#include "model/device/linear.hpp"

#include <utility>

#include "model/device/bias_gradient.hpp"
#include "model/device/multiply.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::device {
namespace {

using fused::GradientPlace;
using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr const char* kWeightGradient = "weight_gradient";

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const GradientPlace& weight_gradient,
                        const MadeAgain& x_again, const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::linear", Inputs({x, weight}), node_number());
    context->save_for_backward({x_again.make ? Tensor() : x, weight});
    keep_queue(context, queue);
    model::keep(context, x_again);
    fused::keep_place(context, kWeightGradient, weight_gradient);
    return shaped_like(multiply_with_bias(*queue, rows_of(x), {weight, bias}), x, weight.size(1));
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor x = take_operand(context, saved[0]), &weight = saved[1];
    RECORD_FUNCTION("sidestream::linear_backward", Inputs({grads[0], x, weight}));
    const Tensor dy = rows_of(grads[0]);
    const LaunchQueuePtr queue = kept_queue(context);
    tensor_list result(6);
    if (context->needs_input_grad(0))
      result[0] = shaped_like(multiply(*queue, dy, weight.t()), x, x.size(-1));
    LinearGradients gradients = linear_gradients(
        *queue, fused::take_place(context, kWeightGradient).memory, rows_of(x), dy);
    result[1] = std::move(gradients.weight);
    result[2] = std::move(gradients.bias);
    return result;
  }
};

}  // namespace

Tensor linear(const LaunchQueuePtr& queue, const Operand& x, const LinearWeights& weights,
              const GradientPlace& weight_gradient) {
  return LinearFunction::apply(x.value, weights.weight, weights.bias, weight_gradient, x.again,
                               queue);
}

LinearGradients linear_gradients(const LaunchQueue& queue, const Tensor& memory, const Tensor& x_rc,
                                 const Tensor& dy_rh) {
  return {product_into(queue, memory, x_rc.t(), dy_rh), bias_gradient(queue, dy_rh)};
}

Tensor shaped_like(const Tensor& rows, const Tensor& x, std::int64_t last) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = last;
  return rows.view(shape);
}

}  // namespace sidestream::model::device
