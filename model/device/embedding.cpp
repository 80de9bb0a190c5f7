#include "model/device/embedding.hpp"

#include <optional>

#include "model/device/geometry.hpp"
#include "model/fused/recorded.hpp"
#include "model/tied_gradient.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

Tensor forward_of(const LaunchQueue& queue, const Tensor& tokens_bt, const Tensor& wte,
                  const Tensor& wpe) {
  const std::int64_t width = wte.size(1);
  const Tensor rows = wte.contiguous(), positions = wpe.defined() ? wpe.contiguous() : Tensor();
  Tensor out = at::empty({tokens_bt.size(0), tokens_bt.size(1), width}, wte.options());
  queue.launch(&DeviceKernels::embed,
               {.dtype = dtype_of(wte),
                .rows = tokens_bt.numel(),
                .time = tokens_bt.size(1),
                .vocabulary = wte.size(0),
                .width = width,
                .ids = tokens_bt.const_data_ptr<std::int64_t>(),
                .tokens = rows.const_data_ptr(),
                .positions = positions.defined() ? positions.const_data_ptr() : nullptr,
                .out = out.mutable_data_ptr()},
               out);
  return out;
}

// Sorted as 32 bits: half of what a sort of int64 moves. A stable sort keeps the batch's order.
void add_token_gradients(const LaunchQueue& queue, const Tensor& dx_btc, const Tensor& tokens_bt,
                         const Tensor& target_vc) {
  constexpr std::optional<bool> kStable = true;
  const auto [ids, order] = at::sort(tokens_bt.reshape({-1}).to(at::kInt), kStable);
  const std::int64_t count = ids.numel(), width = dx_btc.size(-1);
  const Tensor pieces =
      at::empty({token_tiles(count), 2, width}, dx_btc.options().dtype(at::kFloat));
  queue.launch(&DeviceKernels::token_gradients,
               {.dtype = dtype_of(dx_btc),
                .count = count,
                .vocabulary = target_vc.size(0),
                .width = width,
                .gradients = dx_btc.const_data_ptr(),
                .ids = ids.const_data_ptr<std::int32_t>(),
                .order = order.const_data_ptr<std::int64_t>(),
                .pieces = pieces.mutable_data_ptr<float>(),
                .target = target_vc.mutable_data_ptr()},
               dx_btc);
}

Tensor position_gradients(const LaunchQueue& queue, const Tensor& dx_btc, std::int64_t positions) {
  const std::int64_t time = dx_btc.size(1);
  Tensor gradients = at::empty({positions, dx_btc.size(2)}, dx_btc.options());
  if (positions > time) gradients.narrow(0, time, positions - time).zero_();
  queue.launch(&DeviceKernels::position_gradients,
               {.dtype = dtype_of(dx_btc),
                .batch = dx_btc.size(0),
                .time = time,
                .width = dx_btc.size(2),
                .gradients = dx_btc.const_data_ptr(),
                .out = gradients.mutable_data_ptr()},
               dx_btc);
  return gradients;
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& tokens_bt, const Tensor& wte,
                        const std::optional<Tensor>& positions,
                        const c10::intrusive_ptr<TiedGradient>& tied, const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::embed", Inputs({tokens_bt}), node_number());
    const Tensor wpe = positions.value_or(Tensor());
    context->save_for_backward({tokens_bt});
    context->saved_data["rows"] = wte.size(0);
    context->saved_data["positions"] = wpe.defined() ? wpe.size(0) : 0;
    tied_gradient::keep(context, tied);
    keep_queue(context, queue);
    return forward_of(*queue, tokens_bt, wte, wpe);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const Tensor tokens_bt = context->get_saved_variables()[0];
    const Tensor dx = grads[0].contiguous();
    RECORD_FUNCTION("sidestream::embed_backward", Inputs({dx, tokens_bt}));
    const LaunchQueuePtr queue = kept_queue(context);
    const std::int64_t positions = context->saved_data["positions"].toInt();
    tensor_list result(5);
    result[1] = tied_gradient::take(context, {context->saved_data["rows"].toInt(), dx.size(2)},
                                    dx.options());
    add_token_gradients(*queue, dx, tokens_bt, result[1]);
    if (positions > 0) result[2] = position_gradients(*queue, dx, positions);
    return result;
  }
};

}  // namespace

Tensor embed(const LaunchQueuePtr& queue, const Tensor& tokens_bt, const Embeddings& embeddings) {
  // As an optional: autograd looks at the device of every tensor that it is handed.
  std::optional<Tensor> positions;
  if (embeddings.positions_pc.defined()) positions = embeddings.positions_pc;
  return EmbedFunction::apply(tokens_bt.contiguous(), embeddings.tokens_vc, positions,
                              embeddings.tied, queue);
}

}  // namespace sidestream::model::device
