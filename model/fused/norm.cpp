#include "model/fused/norm.hpp"

#include <ATen/Parallel.h>

#include "model/fused/linear_products.hpp"
#include "model/fused/recorded.hpp"
#include "model/kernels/norm.hpp"

namespace sidestream::model::fused {
namespace {

using kernels::NormRows;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr std::int64_t kRowsPerTask =
    128;  // also the unit of partial sums: no result depends on the threads

// Row statistics as one tensor [2, rows]: mean, rstd.
kernels::RowStatistics statistics_at(const Tensor& statistics, std::int64_t row) {
  float* mean = data_of<float>(statistics) + row;
  return {.mean = mean, .rstd = mean + statistics.size(1)};
}

struct Normed {
  Tensor sum, normed, statistics;
};

template <typename T>
Normed forward_of(const Tensor& residual, const Tensor& branch, const NormWeights& weights) {
  const Matrix<T> x(residual);
  Normed out{branch.defined() ? at::empty_like(residual) : Tensor(), at::empty_like(residual),
             at::empty({2, x.rows}, at::kFloat)};
  const auto pointer = [](const Tensor& t, std::int64_t at) {
    return t.defined() ? data_of<T>(t) + at : nullptr;
  };
  at::parallel_for(0, x.rows, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * x.columns;
    kernels::norm_forward(
        {.rows = end - begin, .width = x.columns},
        kernels::NormForward<T>{.residual = x.data + at,
                                .branch = pointer(branch, at),
                                .weight = data_of<T>(weights.weight_c),
                                .bias = data_of<T>(weights.bias_c),
                                .sum = pointer(out.sum, at),
                                .normed = pointer(out.normed, at),
                                .statistics = statistics_at(out.statistics, begin),
                                .eps = static_cast<float>(kNormEps)});
  });
  return out;
}

struct NormGradient {
  Tensor x, weight, bias;
};

// sum_grad may be undefined.
template <typename T>
NormGradient backward_of(const tensor_list& saved, const Tensor& normed_grad,
                         const Tensor& sum_grad) {
  const Tensor &x_tensor = saved[0], &weight = saved[1], &statistics = saved[2];
  const Matrix<T> x(x_tensor);
  const std::int64_t tasks = (x.rows + kRowsPerTask - 1) / kRowsPerTask, width = x.columns;
  const Tensor partial = at::zeros({2, tasks, width}, at::kFloat);
  Tensor dx = at::empty_like(x_tensor);
  at::parallel_for(0, tasks, 1, [&](std::int64_t first_task, std::int64_t last_task) {
    for (std::int64_t task = first_task; task < last_task; ++task) {
      const std::int64_t row = task * kRowsPerTask, at = row * width;
      float* weight_grad = data_of<float>(partial) + task * width;
      kernels::norm_backward(
          {.rows = std::min(kRowsPerTask, x.rows - row), .width = width},
          kernels::NormBackward<T>{
              .x = x.data + at,
              .normed_grad = data_of<T>(normed_grad) + at,
              .sum_grad = sum_grad.defined() ? data_of<T>(sum_grad) + at : nullptr,
              .weight = data_of<T>(weight),
              .statistics = statistics_at(statistics, row),
              .x_grad = data_of<T>(dx) + at,
              .weight_grad = weight_grad,
              .bias_grad = weight_grad + tasks * width});
    }
  });
  const Tensor sums = partial.sum(1);
  return {dx, sums[0].to(weight.scalar_type()), sums[1].to(weight.scalar_type())};
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias) {
    RECORD_FUNCTION("sidestream::norm", Inputs({x}), node_number());
    Normed out;
    with_element_type(x.scalar_type(), [&]<typename T>(T*) {
      out = forward_of<T>(x, {}, {weight, bias});
    });
    context->save_for_backward({x, weight, out.statistics});
    return out.normed;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    RECORD_FUNCTION("sidestream::norm_backward", Inputs({grads[0]}));
    NormGradient gradient;
    with_element_type(grads[0].scalar_type(), [&]<typename T>(T*) {
      gradient = backward_of<T>(context->get_saved_variables(), grads[0].contiguous(), {});
    });
    return {gradient.x, gradient.weight, gradient.bias};
  }
};

struct AddNormFunction : torch::autograd::Function<AddNormFunction> {
  static tensor_list forward(AutogradContext* context, const Tensor& residual, const Tensor& branch,
                             const Tensor& weight, const Tensor& bias) {
    RECORD_FUNCTION("sidestream::add_norm", Inputs({residual, branch}), node_number());
    context->set_materialize_grads(false);
    Normed out;
    with_element_type(residual.scalar_type(), [&]<typename T>(T*) {
      out = forward_of<T>(residual, branch, {weight, bias});
    });
    context->save_for_backward({out.sum, weight, out.statistics});
    return {out.sum, out.normed};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!grads[1].defined()) return {grads[0], grads[0], Tensor(), Tensor()};
    RECORD_FUNCTION("sidestream::add_norm_backward", Inputs({grads[1]}));
    const Tensor sum_grad = grads[0].defined() ? grads[0].contiguous() : Tensor();
    NormGradient gradient;
    with_element_type(grads[1].scalar_type(), [&]<typename T>(T*) {
      gradient = backward_of<T>(context->get_saved_variables(), grads[1].contiguous(), sum_grad);
    });
    return {gradient.x, gradient.x, gradient.weight, gradient.bias};
  }
};

}  // namespace

Tensor norm(const Tensor& x, const NormWeights& weights) {
  return NormFunction::apply(x.contiguous(), weights.weight_c, weights.bias_c);
}

NormedResidual add_norm(const Tensor& residual, const Tensor& branch, const NormWeights& weights) {
  const tensor_list out = AddNormFunction::apply(residual.contiguous(), branch.contiguous(),
                                                 weights.weight_c, weights.bias_c);
  return {.residual_btc = out[0], .normed_btc = out[1]};
}

}  // namespace sidestream::model::fused
