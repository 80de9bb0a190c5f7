#include "model/device/attention.hpp"

#include "model/device/geometry.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// cuDNN reads 16 bytes at once, which LibTorch's allocator sees to but a view may not.
Tensor aligned(const Tensor& tensor) {
  const Tensor rows = tensor.contiguous();
  return begins_a_chunk(rows.const_data_ptr()) ? rows : rows.clone();
}

struct Attended {
  Tensor out_btc, log_sums_bht;
};

// Sums of exponentials are written without a backward, too: the same kernel, for its bits, where a
// block is computed a second time.
Attended attended(const LaunchQueue& queue, const Tensor& qkv_bt3c, std::int64_t heads) {
  const std::int64_t batch = qkv_bt3c.size(0), time = qkv_bt3c.size(1),
                     width = qkv_bt3c.size(2) / 3;
  Attended result{at::empty({batch, time, width}, qkv_bt3c.options()),
                  at::empty({batch, heads, time}, qkv_bt3c.options().dtype(at::kFloat))};
  queue.attention->forward({.qkv_bt3c = qkv_bt3c,
                            .heads = heads,
                            .out_btc = result.out_btc,
                            .log_sums_bht = result.log_sums_bht});
  return result;
}

struct PackedAttentionFunction : torch::autograd::Function<PackedAttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& qkv_bt3c, std::int64_t heads,
                        const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::attention", Inputs({qkv_bt3c}), node_number());
    const Attended result = attended(*queue, qkv_bt3c, heads);
    context->save_for_backward({qkv_bt3c, result.out_btc, result.log_sums_bht});
    context->saved_data["heads"] = heads;
    keep_queue(context, queue);
    return result.out_btc;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    RECORD_FUNCTION("sidestream::attention_backward", Inputs({saved[0], grads[0]}));
    const Tensor out_grad = aligned(grads[0]), qkv_grad = at::empty_like(saved[0]);
    kept_queue(context)->attention->backward({.qkv_bt3c = saved[0],
                                              .heads = context->saved_data["heads"].toInt(),
                                              .out_btc = saved[1],
                                              .log_sums_bht = saved[2],
                                              .out_grad_btc = out_grad,
                                              .qkv_grad_bt3c = qkv_grad});
    return {qkv_grad, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor attention(const LaunchQueuePtr& queue, const Tensor& qkv_bt3c, std::int64_t heads) {
  return PackedAttentionFunction::apply(aligned(qkv_bt3c), heads, queue);
}

}  // namespace sidestream::model::device
