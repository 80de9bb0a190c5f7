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

// Null: GELU is a kernel of its own between the products. kBeforeGelu makes the activation again
// from `before`, of which the product's GELU has seen more digits.
const Products* products_with_gelu(const LaunchQueue& queue, const Tensor& x,
                                   const LinearWeights& in, MlpKeeps keeps) {
  return keeps == MlpKeeps::kBeforeGelu ? nullptr : queue.products.for_gelu(x, in);
}

Hidden hidden_of_product(const Products& products, const Tensor& x, const LinearWeights& in) {
  const Tensor rows = rows_of(x);
  const Tensor before = at::empty({rows.size(0), in.weight.size(1)}, rows.options());
  const Tensor activation = at::empty_like(before);
  RECORD_FUNCTION("sidestream::gelu_product", Inputs({rows, in.weight}));
  products.with_gelu(rows, in.weight, in.bias, before, activation);
  return {before, activation};
}

Tensor before_gelu(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in) {
  return multiply_with_bias(queue, rows_of(x), in);
}

Hidden hidden_of(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in,
                 const Products* products) {
  if (products != nullptr) return hidden_of_product(*products, x, in);
  const Tensor before = before_gelu(queue, x, in), activation = at::empty_like(before);
  gelu_into(queue, before, activation);
  return {before, activation};
}

// Where nothing is going to be differentiated. The product that training has, for its bits: what
// goes into GELU is written there, too.
Tensor activation_of(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in,
                     const Products* products) {
  if (products != nullptr) return hidden_of_product(*products, x, in).activation;
  const Tensor hidden = before_gelu(queue, x, in);
  gelu_into(queue, hidden, hidden);
  return hidden;
}

// As it was kept, or made again. A kernel of GELU's backward makes the activation itself.
Hidden hidden_again(const LaunchQueue& queue, const Tensor& x, const LinearWeights& in,
                    const Hidden& kept, const Products* products) {
  if (kept.before.defined()) return kept;
  if (products != nullptr) return hidden_of_product(*products, x, in);
  return {before_gelu(queue, x, in), Tensor()};
}

// What forward kept, by what there is of it.
MlpKeeps kept_of(const Hidden& kept) {
  if (kept.activation.defined()) return MlpKeeps::kAll;
  return kept.before.defined() ? MlpKeeps::kBeforeGelu : MlpKeeps::kInput;
}

struct HiddenGradient {
  Tensor grad, activation, bias_grad;
};

// grad: of the activation, [rows, H]; its memory is used. The activation is computed where it was
// not kept.
HiddenGradient through_gelu(const LaunchQueue& queue, const Tensor& grad, const Hidden& hidden) {
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

// dy: of the second product.
HiddenGradient hidden_gradient(const LaunchQueue& queue, const Tensor& dy, const Tensor& out_weight,
                               Hidden hidden, const Products* products) {
  if (products == nullptr || !Products::take(dy, out_weight))
    return through_gelu(queue, multiply(queue, dy, out_weight.t()), hidden);
  HiddenGradient result{at::empty_like(hidden.before), std::move(hidden.activation),
                        at::empty({hidden.before.size(1)}, dy.options())};
  RECORD_FUNCTION("sidestream::gelu_product_backward", Inputs({dy, out_weight}));
  products->through_gelu(dy, out_weight, hidden.before, result.grad, result.bias_grad);
  return result;
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
    const Hidden hidden = hidden_of(*queue, x, {in_weight, in_bias},
                                    products_with_gelu(*queue, x, {in_weight, in_bias}, keeps));
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
    const Hidden kept{saved[1], saved[5]};
    const Products* products = products_with_gelu(queue, x, {in_weight, in_bias}, kept_of(kept));
    Hidden hidden = hidden_again(queue, x, {in_weight, in_bias}, kept, products);
    RECORD_FUNCTION("sidestream::mlp_backward", Inputs({grads[0], x, in_weight, out_weight}));
    const Tensor dy = rows_of(grads[0]);
    tensor_list result(8);
    HiddenGradient gradient = hidden_gradient(queue, dy, out_weight, std::move(hidden), products);
    LinearGradients out = linear_gradients(queue, fused::take_place(context, kOutGradient).memory,
                                           gradient.activation, out_weight, dy);
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
  const Tensor activation =
      activation_of(*queue, x, in, products_with_gelu(*queue, x, in, options.keeps));
  return shaped_like(multiply_with_bias(*queue, activation, out), x, out.weight.size(1));
}

}  // namespace sidestream::model::device
