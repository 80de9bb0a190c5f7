#include "model/device/norm.hpp"

#include "model/device/geometry.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

void* written(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}
const void* read(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

struct Normed {
  Tensor sum, normed, statistics;  // statistics [2, rows]: mean, rstd
};

// branch may be undefined; then there is no sum.
Normed forward_of(const LaunchQueue& queue, const Tensor& residual, const Tensor& branch,
                  const NormWeights& weights) {
  const std::int64_t width = residual.size(-1), rows = residual.numel() / width;
  Normed out{branch.defined() ? at::empty_like(residual) : Tensor(), at::empty_like(residual),
             at::empty({2, rows}, residual.options().dtype(at::kFloat))};
  float* statistics = out.statistics.mutable_data_ptr<float>();
  const Tensor weight = weights.weight_c.contiguous(), bias = weights.bias_c.contiguous();
  queue.launch(&DeviceKernels::norm_forward,
               {.dtype = dtype_of(residual),
                .rows = rows,
                .width = width,
                .residual = read(residual),
                .branch = read(branch),
                .weight = read(weight),
                .bias = read(bias),
                .sum = written(out.sum),
                .normed = written(out.normed),
                .mean = statistics,
                .rstd = statistics + rows,
                .eps = static_cast<float>(kNormEps)},
               residual);
  return out;
}

struct NormGradient {
  Tensor x, weight, bias;
};

// Whether a branch was added, to which a bias may have been.
enum class Branch { kNo, kYes };

// sum_grad may be undefined.
NormGradient backward_of(AutogradContext* context, const Tensor& normed_grad,
                         const Tensor& sum_grad, Branch branch) {
  const LaunchQueuePtr queue = kept_queue(context);
  const tensor_list saved = context->get_saved_variables();
  const Tensor &x = saved[0], weight = saved[1].contiguous(), &statistics = saved[2];
  const std::int64_t width = x.size(-1), rows = x.numel() / width, parts = norm_parts(rows, width);
  const float* mean = statistics.const_data_ptr<float>();
  const Tensor partial = at::empty({3, parts, width}, statistics.options());
  NormGradient gradient{at::empty_like(x), at::empty_like(weight), at::empty_like(weight)};
  const Tensor x_sums = branch == Branch::kYes ? at::empty_like(weight) : Tensor();
  queue->launch(&DeviceKernels::norm_backward,
                {.dtype = dtype_of(x),
                 .rows = rows,
                 .width = width,
                 .x = read(x),
                 .normed_grad = read(normed_grad),
                 .sum_grad = read(sum_grad),
                 .weight = read(weight),
                 .mean = mean,
                 .rstd = mean + rows,
                 .x_grad = written(gradient.x),
                 .partial = partial.mutable_data_ptr<float>()},
                x);
  queue->launch(&DeviceKernels::column_sums,
                {.dtype = dtype_of(x),
                 .partial = partial.const_data_ptr<float>(),
                 .parts = parts,
                 .width = width,
                 .first = written(gradient.weight),
                 .second = written(gradient.bias),
                 .third = written(x_sums)},
                x);
  if (x_sums.defined()) queue->sums->offer(gradient.x, x_sums);
  return gradient;
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::norm", Inputs({x}), node_number());
    Normed out = forward_of(*queue, x, {}, {weight, bias});
    keep_queue(context, queue);
    context->save_for_backward({x, weight, out.statistics});
    return out.normed;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    RECORD_FUNCTION("sidestream::norm_backward", Inputs({grads[0]}));
    const NormGradient gradient = backward_of(context, grads[0].contiguous(), {}, Branch::kNo);
    return {gradient.x, gradient.weight, gradient.bias, Tensor()};
  }
};

struct AddNormFunction : torch::autograd::Function<AddNormFunction> {
  static tensor_list forward(AutogradContext* context, const Tensor& residual, const Tensor& branch,
                             const Tensor& weight, const Tensor& bias,
                             const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::add_norm", Inputs({residual, branch}), node_number());
    context->set_materialize_grads(false);
    Normed out = forward_of(*queue, residual, branch, {weight, bias});
    keep_queue(context, queue);
    context->save_for_backward({out.sum, weight, out.statistics});
    return {out.sum, out.normed};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!grads[1].defined()) return {grads[0], grads[0], Tensor(), Tensor(), Tensor()};
    RECORD_FUNCTION("sidestream::add_norm_backward", Inputs({grads[1]}));
    const Tensor sum_grad = grads[0].defined() ? grads[0].contiguous() : Tensor();
    const NormGradient gradient =
        backward_of(context, grads[1].contiguous(), sum_grad, Branch::kYes);
    return {gradient.x, gradient.x, gradient.weight, gradient.bias, Tensor()};
  }
};

}  // namespace

Tensor norm(const LaunchQueuePtr& queue, const Tensor& x, const NormWeights& weights) {
  return NormFunction::apply(x.contiguous(), weights.weight_c, weights.bias_c, queue);
}

NormedResidual add_norm(const LaunchQueuePtr& queue, const Tensor& residual, const Tensor& branch,
                        const NormWeights& weights) {
  const tensor_list out = AddNormFunction::apply(residual.contiguous(), branch.contiguous(),
                                                 weights.weight_c, weights.bias_c, queue);
  return {.residual_btc = out[0], .normed_btc = out[1]};
}

}  // namespace sidestream::model::device
