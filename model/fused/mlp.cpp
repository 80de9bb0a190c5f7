#include "model/fused/mlp.hpp"

#include "model/fused/linear_products.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::fused {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Hidden {
  Tensor before, activation;
};

template <typename T>
Hidden into_hidden(const Tensor& x_tensor, const LinearWeights& in) {
  const Matrix<T> x(x_tensor), w(in.weight);
  Hidden hidden{empty_rows(x_tensor, w.columns), empty_rows(x_tensor, w.columns)};
  T* before = data_of<T>(hidden.before);
  T* activation = data_of<T>(hidden.activation);
  const T* bias = data_of<T>(in.bias);
  product<T>({.m = x.rows, .n = w.columns, .k = w.rows}, {.data = x.data, .stride = x.columns},
             {.data = w.data, .stride = w.columns}, [&](const kernels::Tile& tile, TilePlace at) {
               const std::int64_t offset = at.row * w.columns + at.column;
               kernels::store_with_bias_gelu(
                   tile, bias + at.column,
                   kernels::GeluRows<T>{.before = {before + offset, w.columns},
                                        .activation = {activation + offset, w.columns}});
             });
  return hidden;
}

template <typename T>
Tensor out_of_hidden(const Tensor& activation, const LinearWeights& out) {
  const Matrix<T> a(activation), w(out.weight);
  Tensor y = empty_rows(activation, w.columns);
  T* target = data_of<T>(y);
  const T* bias = data_of<T>(out.bias);
  product<T>({.m = a.rows, .n = w.columns, .k = w.rows}, {.data = a.data, .stride = a.columns},
             {.data = w.data, .stride = w.columns}, [&](const kernels::Tile& tile, TilePlace at) {
               kernels::store_with_bias(
                   tile, bias + at.column,
                   kernels::Rows<T>{target + at.row * w.columns + at.column, w.columns});
             });
  return y;
}

// What forward has not kept.
template <typename T>
Tensor before_gelu(const Tensor& x, const LinearWeights& in) {
  RECORD_FUNCTION("sidestream::linear", Inputs({x, in.weight}));
  return into_hidden<T>(x, in).before;
}

struct HiddenGradient {
  Tensor grad, activation, bias_grad;
};

template <typename T>
HiddenGradient gradient_of_hidden(const Tensor& dy_tensor, const Tensor& out_weight,
                                  const Tensor& before_tensor) {
  const Matrix<T> dy(dy_tensor), w(out_weight), before(before_tensor);
  HiddenGradient result{at::empty_like(before_tensor), at::empty_like(before_tensor),
                        at::zeros({before.columns}, at::kFloat)};
  T* grad = data_of<T>(result.grad);
  T* activation = data_of<T>(result.activation);
  float* bias_grad = data_of<float>(result.bias_grad);
  product<T>({.m = dy.rows, .n = w.rows, .k = w.columns}, {.data = dy.data, .stride = dy.columns},
             {.data = w.data, .stride = w.columns, .orientation = Orientation::kTransposed},
             [&](const kernels::Tile& tile, TilePlace at) {
               const std::int64_t offset = at.row * before.columns + at.column;
               kernels::gelu_backward(tile, kernels::GeluBackwardRows<T>{
                                                .before = {before.data + offset, before.columns},
                                                .grad = {grad + offset, before.columns},
                                                .activation = {activation + offset, before.columns},
                                                .bias_grad = bias_grad + at.column});
             });
  return result;
}

constexpr const char *kInGradient = "in_gradient", *kOutGradient = "out_gradient";

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& in_weight,
                        const Tensor& in_bias, const Tensor& out_weight, const Tensor& out_bias,
                        const MadeAgain& x_again, const MlpOptions& options) {
    RECORD_FUNCTION("sidestream::mlp", Inputs({x, in_weight, out_weight}), node_number());
    keep(context, x_again);
    keep_place(context, kInGradient, options.gradients.in_weight);
    keep_place(context, kOutGradient, options.gradients.out_weight);
    Tensor y;
    with_element_type(x.scalar_type(), [&]<typename T>(T*) {
      const Hidden hidden = into_hidden<T>(x, {in_weight, in_bias});
      y = out_of_hidden<T>(hidden.activation, {out_weight, out_bias});
      context->save_for_backward({x_again.make ? Tensor() : x,
                                  options.keeps == MlpKeeps::kInput ? Tensor() : hidden.before,
                                  in_weight, out_weight, in_bias});
    });
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &in_weight = saved[2], &out_weight = saved[3], &in_bias = saved[4];
    const Tensor x = take_operand(context, saved[0]), dy = grads[0].contiguous();
    Tensor before = saved[1];
    if (!before.defined()) {  // an operator of its own: its product is none of those below
      with_element_type(dy.scalar_type(), [&]<typename T>(T*) {
        before = before_gelu<T>(x, {.weight = in_weight, .bias = in_bias});
      });
    }
    RECORD_FUNCTION("sidestream::mlp_backward", Inputs({dy, x, in_weight, out_weight}));
    tensor_list result(7);
    with_element_type(dy.scalar_type(), [&]<typename T>(T*) {
      HiddenGradient hidden = gradient_of_hidden<T>(dy, out_weight, before);
      before.reset();
      result[4] = bias_gradient<T>(dy);
      result[3] = weight_gradient<T>(hidden.activation, dy, take_place(context, kOutGradient));
      hidden.activation.reset();
      result[2] = rounded(hidden.bias_grad, dy.scalar_type());
      result[1] = weight_gradient<T>(x, hidden.grad, take_place(context, kInGradient));
      if (context->needs_input_grad(0)) result[0] = input_gradient<T>(hidden.grad, in_weight);
    });
    return result;
  }
};

}  // namespace

Tensor mlp(const Operand& x, const LinearWeights& in, const LinearWeights& out,
           const MlpOptions& options) {
  return MlpFunction::apply(x.value.contiguous(), in.weight, in.bias, out.weight, out.bias, x.again,
                            options);
}

}  // namespace sidestream::model::fused
