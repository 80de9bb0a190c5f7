#include "model/device/embedding.hpp"

#include <optional>

#include "model/device/embedding_tiles.hpp"
#include "model/fused/recorded.hpp"
#include "model/tied_gradient.hpp"

namespace sidestream::model::device {
namespace {

using fused::Inputs;
using fused::node_number;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// Places among the inputs that are tensors.
constexpr std::size_t kTokensEdge = 1, kPositionsEdge = 2;

// The kernels take addresses as they are. Nothing of it asks the device.
void check(const Tensor& tokens_bt, const Embeddings& embeddings) {
  const Tensor &tokens_vc = embeddings.tokens_vc, &positions_pc = embeddings.positions_pc;
  TORCH_CHECK(tokens_bt.dim() == 2 && tokens_bt.scalar_type() == at::kLong &&
                  tokens_bt.device() == tokens_vc.device(),
              "expected tokens [B, T] of type int64 on ", tokens_vc.device(), ", found ",
              tokens_bt.sizes(), " of ", tokens_bt.scalar_type(), " on ", tokens_bt.device());
  if (!positions_pc.defined()) return;
  TORCH_CHECK(positions_pc.scalar_type() == tokens_vc.scalar_type() &&
                  positions_pc.device() == tokens_vc.device() && positions_pc.dim() == 2 &&
                  positions_pc.size(1) == tokens_vc.size(1) &&
                  positions_pc.size(0) >= tokens_bt.size(1),
              "expected positions [", tokens_bt.size(1), " or more, ", tokens_vc.size(1), "] of ",
              tokens_vc.scalar_type(), " on ", tokens_vc.device(), ", found ", positions_pc.sizes(),
              " of ", positions_pc.scalar_type(), " on ", positions_pc.device());
}

Tensor forward_of(const LaunchQueue& queue, const Tensor& tokens_bt, const Tensor& tokens_vc,
                  const Tensor& positions_pc) {
  const Tensor rows_vc = tokens_vc.contiguous();
  const Tensor positions = positions_pc.defined() ? positions_pc.contiguous() : Tensor();
  Tensor out_btc =
      at::empty({tokens_bt.size(0), tokens_bt.size(1), tokens_vc.size(1)}, tokens_vc.options());
  queue.launch(&DeviceKernels::embed,
               {.dtype = dtype_of(tokens_vc),
                .batch = tokens_bt.size(0),
                .time = tokens_bt.size(1),
                .vocabulary = tokens_vc.size(0),
                .width = tokens_vc.size(1),
                .ids = tokens_bt.const_data_ptr<std::int64_t>(),
                .tokens = rows_vc.const_data_ptr(),
                .positions = positions.defined() ? positions.const_data_ptr() : nullptr,
                .out = out_btc.mutable_data_ptr()},
               out_btc);
  return out_btc;
}

// Sorted as 32 bits, half of what a sort of int64 moves: what is outside the vocabulary stays
// outside. A stable sort keeps the batch's order.
void add_token_gradients(const LaunchQueue& queue, const Tensor& dx_btc, const Tensor& tokens_bt,
                         const Tensor& gradient_vc) {
  constexpr std::optional<bool> kStable = true;
  const std::int64_t vocabulary = gradient_vc.size(0), width = gradient_vc.size(1);
  const auto [ids, order] =
      at::sort(tokens_bt.reshape({-1}).clamp(-1, vocabulary).to(at::kInt), kStable);
  const Tensor pieces =
      at::empty({token_tiles(ids.numel()), 2, width}, dx_btc.options().dtype(at::kFloat));
  queue.launch(&DeviceKernels::token_gradients,
               {.dtype = dtype_of(dx_btc),
                .count = ids.numel(),
                .vocabulary = vocabulary,
                .width = width,
                .gradients = dx_btc.const_data_ptr(),
                .ids = ids.const_data_ptr<std::int32_t>(),
                .order = order.const_data_ptr<std::int64_t>(),
                .pieces = pieces.mutable_data_ptr<float>(),
                .target = gradient_vc.mutable_data_ptr()},
               dx_btc);
}

Tensor position_gradients(const Tensor& dx_btc, std::int64_t positions) {
  const std::int64_t time = dx_btc.size(1);
  Tensor gradient_pc = at::empty({positions, dx_btc.size(2)}, dx_btc.options());
  if (positions > time) gradient_pc.narrow(0, time, positions - time).zero_();
  Tensor used = gradient_pc.narrow(0, 0, time);
  at::sum_out(used, dx_btc, 0);
  return gradient_pc;
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& tokens_bt, const Tensor& tokens_vc,
                        const std::optional<Tensor>& positions_pc,
                        const c10::intrusive_ptr<TiedGradient>& tied, const LaunchQueuePtr& queue) {
    RECORD_FUNCTION("sidestream::embed", Inputs({tokens_vc, tokens_bt}), node_number());
    const Tensor positions = positions_pc.value_or(Tensor());
    context->save_for_backward({tokens_bt});
    context->saved_data["rows"] = tokens_vc.size(0);
    context->saved_data["positions"] = positions.defined() ? positions.size(0) : 0;
    tied_gradient::keep(context, tied);
    keep_queue(context, queue);
    return forward_of(*queue, tokens_bt, tokens_vc, positions);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const Tensor tokens_bt = context->get_saved_variables()[0];
    const Tensor dx_btc = grads[0].contiguous();
    RECORD_FUNCTION("sidestream::embed_backward", Inputs({dx_btc, tokens_bt}));
    tensor_list result(5);
    if (context->needs_input_grad(kTokensEdge)) {
      const std::int64_t rows = context->saved_data["rows"].toInt();
      result[1] = tied_gradient::take(context, {rows, dx_btc.size(2)}, dx_btc.options());
      add_token_gradients(*kept_queue(context), dx_btc, tokens_bt, result[1]);
    }
    const std::int64_t positions = context->saved_data["positions"].toInt();
    if (positions > 0 && context->needs_input_grad(kPositionsEdge))
      result[2] = position_gradients(dx_btc, positions);
    return result;
  }
};

}  // namespace

Tensor embed(const LaunchQueuePtr& queue, const Tensor& tokens_bt, const Embeddings& embeddings) {
  check(tokens_bt, embeddings);
  tied_gradient::announce(embeddings);
  // As an optional: autograd looks at the device of every tensor that it is handed.
  std::optional<Tensor> positions_pc;
  if (embeddings.positions_pc.defined()) positions_pc = embeddings.positions_pc;
  return EmbedFunction::apply(tokens_bt.contiguous(), embeddings.tokens_vc, positions_pc,
                              embeddings.tied, queue);
}

}  // namespace sidestream::model::device
