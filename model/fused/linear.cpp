#include "model/fused/linear.hpp"

#include "model/fused/linear_products.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::fused {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

template <typename T>
Tensor forward_of(const Tensor& x_tensor, const Tensor& weight, const Tensor& bias) {
  const Matrix<T> x(x_tensor), w(weight);
  Tensor y = empty_rows(x_tensor, w.columns);
  product_with_bias<T>({.m = x.rows, .n = w.columns, .k = w.rows},
                       {.data = x.data, .stride = x.columns}, {.data = w.data, .stride = w.columns},
                       data_of<T>(bias), {data_of<T>(y), w.columns});
  return y;
}

constexpr const char* kWeightGradient = "weight_gradient";

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const MadeAgain& x_again,
                        const GradientPlace& weight_gradient) {
    RECORD_FUNCTION("sidestream::linear", Inputs({x, weight}), node_number());
    context->save_for_backward({x_again.make ? Tensor() : x, weight});
    keep(context, x_again);
    keep_place(context, kWeightGradient, weight_gradient);
    Tensor y;
    with_element_type(x.scalar_type(), [&]<typename T>(T*) { y = forward_of<T>(x, weight, bias); });
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor x = take_operand(context, saved[0]), dy = grads[0].contiguous();
    RECORD_FUNCTION("sidestream::linear_backward", Inputs({dy, x, saved[1]}));
    tensor_list result(5);
    with_element_type(dy.scalar_type(), [&]<typename T>(T*) {
      // Before the input's: it may travel meanwhile.
      GradientPlace place = take_place(context, kWeightGradient);
      result[1] =
          handed_over(weight_gradient<T>(x, dy, std::move(place.memory)), place, *context, 1);
      result[2] = bias_gradient<T>(dy);
      if (context->needs_input_grad(0)) result[0] = input_gradient<T>(dy, saved[1]);
    });
    return result;
  }
};

}  // namespace

Tensor linear(const Operand& x, const LinearWeights& weights,
              const GradientPlace& weight_gradient) {
  return LinearFunction::apply(x.value.contiguous(), weights.weight, weights.bias, x.again,
                               weight_gradient);
}

}  // namespace sidestream::model::fused
