// The kernels, and the stream that a tensor's work is queued on. Shared with the nodes of autograd,
// which launch their backward when it comes. Tests put loops on the processor here.
#pragma once

#include <functional>
#include <memory>

#include <torch/autograd.h>
#include <torch/types.h>

#include "core/base/dtype.hpp"
#include "model/device/device_kernels.hpp"
#include "model/device/packed_attention.hpp"
#include "model/device/products.hpp"
#include "model/device/sums_at_hand.hpp"

namespace sidestream::model::device {

struct LaunchQueue : torch::CustomClassHolder {
  std::shared_ptr<DeviceKernels> kernels;
  std::shared_ptr<const Products> products;  // null: LibTorch's
  std::shared_ptr<SumsAtHand> sums = std::make_shared<SumsAtHand>();
  std::shared_ptr<const PackedAttention> attention;  // null: LibTorch's
  torch::DeviceType device = torch::kCUDA;           // whose tensors the kernels take
  std::function<DeviceStream(const torch::Device&)> current_stream;

  // queue.launch(&DeviceKernels::gelu_forward, {...}, x): on the current stream of x's device.
  template <typename Job>
  void launch(void (DeviceKernels::*kernel)(const Job&, DeviceStream),
              const std::type_identity_t<Job>& job, const torch::Tensor& on) const {
    const c10::DeviceGuard guard(on.device());
    ((*kernels).*kernel)(job, current_stream(on.device()));
  }
};

using LaunchQueuePtr = c10::intrusive_ptr<LaunchQueue>;

// LibTorch's current streams. Null in a build without CUDA.
LaunchQueuePtr make_launch_queue();

// From an operator's forward to its backward.
inline void keep_queue(torch::autograd::AutogradContext* context, const LaunchQueuePtr& queue) {
  context->saved_data["queue"] = c10::IValue::make_capsule(queue);
}
inline LaunchQueuePtr kept_queue(torch::autograd::AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<LaunchQueue>(context->saved_data["queue"].toCapsule());
}

// Float, bfloat16 and float16 are what the kernels know; the kernels refuse what else comes.
inline core::DType dtype_of(const torch::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return core::DType::kFloat32;
  if (tensor.scalar_type() == at::kHalf) return core::DType::kFloat16;
  return tensor.scalar_type() == at::kBFloat16 ? core::DType::kBFloat16 : core::DType::kUInt8;
}

// Rows of the last dimension, contiguous.
inline torch::Tensor rows_of(const torch::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}

}  // namespace sidestream::model::device
