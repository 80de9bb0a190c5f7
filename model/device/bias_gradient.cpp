#include "model/device/bias_gradient.hpp"

#include "model/device/geometry.hpp"

namespace sidestream::model::device {

using torch::Tensor;

Tensor bias_gradient(const LaunchQueue& queue, const Tensor& grad_rc) {
  if (Tensor sums = queue.sums->take(grad_rc); sums.defined()) return sums;
  const std::int64_t rows = grad_rc.size(0), width = grad_rc.size(1);
  const Tensor partial =
      at::empty({row_parts(rows, width), width}, grad_rc.options().dtype(at::kFloat));
  queue.launch(&DeviceKernels::row_sums,
               {.dtype = dtype_of(grad_rc),
                .rows = rows,
                .width = width,
                .x = grad_rc.const_data_ptr(),
                .partial = partial.mutable_data_ptr<float>()},
               grad_rc);
  return sum_of_parts(queue, partial, grad_rc);
}

Tensor sum_of_parts(const LaunchQueue& queue, const Tensor& partial, const Tensor& like) {
  const std::int64_t width = partial.size(1);
  Tensor sums = at::empty({width}, like.options());
  queue.launch(&DeviceKernels::column_sums,
               {.dtype = dtype_of(like),
                .partial = partial.const_data_ptr<float>(),
                .parts = partial.size(0),
                .width = width,
                .first = sums.mutable_data_ptr(),
                .second = nullptr,
                .third = nullptr},
               like);
  return sums;
}

}  // namespace sidestream::model::device
