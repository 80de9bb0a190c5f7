#include "model/fused/mlp.hpp"

#include "model/fused/column_sums.hpp"
#include "model/fused/linear_products.hpp"
#include "model/fused/panel_matrix.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::fused {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

template <typename T>
struct Hidden {
  PanelMatrix<T> before, activation;
};

template <typename T>
Hidden<T> into_hidden(const Tensor& x_tensor, const LinearWeights& in) {
  const Matrix<T> x(x_tensor), w(in.weight);
  const Hidden<T> hidden{empty_panels<T>(x.rows, w.columns, x_tensor.options()),
                         empty_panels<T>(x.rows, w.columns, x_tensor.options())};
  const T* bias = data_of<T>(in.bias);
  product<T>({.m = x.rows, .n = w.columns, .k = w.rows}, {.data = x.data, .stride = x.columns},
             {.data = w.data, .stride = w.columns}, [&](const kernels::Tile& tile, TilePlace at) {
               kernels::store_with_bias_gelu(
                   tile, bias + at.column,
                   kernels::GeluRows<T>{.before = hidden.before.rows_at(at),
                                        .activation = hidden.activation.rows_at(at)});
             });
  return hidden;
}

template <typename T>
Tensor out_of_hidden(const Tensor& x, const PanelMatrix<T>& activation, const LinearWeights& out) {
  const Matrix<T> w(out.weight);
  Tensor y = empty_rows(x, w.columns);
  product_with_bias<T>({.m = activation.rows, .n = w.columns, .k = w.rows}, activation.left(),
                       {.data = w.data, .stride = w.columns}, data_of<T>(out.bias),
                       {data_of<T>(y), w.columns});
  return y;
}

// What forward has not kept.
template <typename T>
Tensor before_gelu(const Tensor& x, const LinearWeights& in) {
  RECORD_FUNCTION("sidestream::linear", Inputs({x, in.weight}));
  return into_hidden<T>(x, in).before.storage;
}

template <typename T>
struct HiddenGradient {
  PanelMatrix<T> grad, activation;
  ColumnSums bias_grad;
};

// A tile of the gradient of the activation.
template <typename T>
void take_tile(const HiddenGradient<T>& result, const PanelMatrix<T>& before,
               const kernels::Tile& tile, TilePlace at) {
  result.bias_grad.add(at, {.rows = tile.rows, .columns = tile.columns},
                       [&](std::int64_t row, std::int64_t rows, float* bias_grad) {
                         const TilePlace place{.row = row, .column = at.column};
                         const kernels::Rows<T> kept = before.rows_at(place);
                         kernels::gelu_backward(rows_of(tile, row - at.row, rows),
                                                kernels::GeluBackwardRows<T>{
                                                    .before = {kept.data, kept.stride},
                                                    .grad = result.grad.rows_at(place),
                                                    .activation = result.activation.rows_at(place),
                                                    .bias_grad = bias_grad});
                       });
}

template <typename T>
HiddenGradient<T> gradient_of_hidden(const Tensor& dy_tensor, const Tensor& out_weight,
                                     const Tensor& before_tensor) {
  const Matrix<T> dy(dy_tensor), w(out_weight);
  const PanelMatrix<T> before = as_products_lie(PanelMatrix<T>(before_tensor, dy.rows, w.rows));
  const HiddenGradient<T> result{empty_panels<T>(dy.rows, w.rows, dy_tensor.options()),
                                 empty_panels<T>(dy.rows, w.rows, dy_tensor.options()),
                                 ColumnSums(dy.rows, w.rows)};
  product<T>({.m = dy.rows, .n = w.rows, .k = w.columns}, {.data = dy.data, .stride = dy.columns},
             {.data = w.data, .stride = w.columns, .orientation = Orientation::kTransposed},
             [&](const kernels::Tile& tile, TilePlace at) { take_tile(result, before, tile, at); });
  return result;
}

// activation^T dy
template <typename T>
Tensor out_weight_gradient(const PanelMatrix<T>& activation, const Tensor& dy_tensor,
                           Tensor memory) {
  const Matrix<T> dy(dy_tensor);
  Tensor dw = or_empty(std::move(memory), {activation.columns, dy.columns}, dy_tensor.options());
  product_into<T>(
      {.m = activation.columns, .n = dy.columns, .k = dy.rows},
      activation.left(Orientation::kTransposed), {.data = dy.data, .stride = dy.columns},
      kernels::Rows<T>{data_of<T>(dw), dy.columns}, Existing::kReplace, NextRead::kLater);
  return dw;
}

// x^T grad
template <typename T>
Tensor in_weight_gradient(const Tensor& x_tensor, const PanelMatrix<T>& grad, Tensor memory) {
  const Matrix<T> x(x_tensor);
  Tensor dw = or_empty(std::move(memory), {x.columns, grad.columns}, x_tensor.options());
  product_into<T>({.m = x.columns, .n = grad.columns, .k = x.rows},
                  {.data = x.data, .stride = x.columns, .orientation = Orientation::kTransposed},
                  grad.right(), kernels::Rows<T>{data_of<T>(dw), grad.columns}, Existing::kReplace,
                  NextRead::kLater);
  return dw;
}

// grad in_weight^T
template <typename T>
Tensor in_gradient(const Tensor& x, const PanelMatrix<T>& grad, const Tensor& in_weight) {
  const Matrix<T> w(in_weight);
  Tensor dx = empty_rows(x, w.rows);
  product_into<T>({.m = grad.rows, .n = w.rows, .k = w.columns}, grad.left(),
                  {.data = w.data, .stride = w.columns, .orientation = Orientation::kTransposed},
                  kernels::Rows<T>{data_of<T>(dx), w.rows});
  return dx;
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
      const Hidden<T> hidden = into_hidden<T>(x, {in_weight, in_bias});
      y = out_of_hidden<T>(x, hidden.activation, {out_weight, out_bias});
      context->save_for_backward(
          {x_again.make ? Tensor() : x,
           options.keeps == MlpKeeps::kInput ? Tensor() : hidden.before.storage, in_weight,
           out_weight, in_bias});
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
      HiddenGradient<T> hidden = gradient_of_hidden<T>(dy, out_weight, before);
      before.reset();
      result[4] = bias_gradient<T>(dy);
      GradientPlace out_place = take_place(context, kOutGradient);
      result[3] =
          handed_over(out_weight_gradient(hidden.activation, dy, std::move(out_place.memory)),
                      out_place, *context, 3);
      hidden.activation.storage.reset();
      result[2] = rounded(hidden.bias_grad.sums(), dy.scalar_type());
      GradientPlace in_place = take_place(context, kInGradient);
      result[1] = handed_over(in_weight_gradient(x, hidden.grad, std::move(in_place.memory)),
                              in_place, *context, 1);
      if (context->needs_input_grad(0)) result[0] = in_gradient(x, hidden.grad, in_weight);
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
