#include "model/fused/attention.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>

#include "model/fused/attention_head.hpp"
#include "model/fused/recorded.hpp"

namespace sidestream::model::fused {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Layout {
  Layout(const Tensor& qkv_bt3c, std::int64_t heads_)
      : batch(qkv_bt3c.size(0)),
        time(qkv_bt3c.size(1)),
        width(qkv_bt3c.size(2) / 3),
        heads(heads_) {}

  HeadShape head_shape() const {
    const std::int64_t head_width = width / heads;
    return {.time = time,
            .width = head_width,
            .qkv_stride = 3 * width,
            .out_stride = width,
            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width)))};
  }
  std::int64_t count() const { return batch * heads; }
  // First element of head i of a tensor [B, T, stride].
  std::int64_t offset(std::int64_t i, std::int64_t stride) const {
    return i / heads * time * stride + i % heads * (width / heads);
  }

  std::int64_t batch, time, width, heads;
};

struct Attended {
  Tensor out_btc, log_sum;  // log_sum [B * heads, T]
};

template <typename T>
Attended forward_of(const Tensor& qkv_bt3c, const Layout& layout) {
  const std::int64_t time = layout.time, width = layout.width;
  Attended result{at::empty({layout.batch, time, width}, qkv_bt3c.options()),
                  at::empty({layout.count(), time}, at::kFloat)};
  const auto number = [&](std::int64_t i) -> HeadForward<T> {
    const T* q = data_of<T>(qkv_bt3c) + layout.offset(i, 3 * width);
    return {.q = q,
            .k = q + width,
            .v = q + 2 * width,
            .out = data_of<T>(result.out_btc) + layout.offset(i, width),
            .log_sum = data_of<float>(result.log_sum) + i * time};
  };
  at::parallel_for(0, layout.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    ForwardHead<T> head(layout.head_shape());
    for (std::int64_t i = begin; i < end; ++i)
      head.run(number(i), number(std::min(i + 1, end - 1)));
    release_products<T>();
  });
  return result;
}

template <typename T>
Tensor backward_of(const Tensor& qkv_bt3c, const Attended& attended, const Tensor& out_grad,
                   const Layout& layout) {
  const std::int64_t width = layout.width;
  Tensor result = at::empty_like(qkv_bt3c);
  const auto number = [&](std::int64_t i) -> HeadBackward<T> {
    const std::int64_t in_offset = layout.offset(i, 3 * width),
                       out_offset = layout.offset(i, width);
    const T* q = data_of<T>(qkv_bt3c) + in_offset;
    T* q_grad = data_of<T>(result) + in_offset;
    return {.q = q,
            .k = q + width,
            .v = q + 2 * width,
            .out = data_of<T>(attended.out_btc) + out_offset,
            .out_grad = data_of<T>(out_grad) + out_offset,
            .log_sum = data_of<float>(attended.log_sum) + i * layout.time,
            .q_grad = q_grad,
            .k_grad = q_grad + width,
            .v_grad = q_grad + 2 * width};
  };
  at::parallel_for(0, layout.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    BackwardHead<T> head(layout.head_shape());
    for (std::int64_t i = begin; i < end; ++i)
      head.run(number(i), number(std::min(i + 1, end - 1)));
    release_products<T>();
  });
  return result;
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static Tensor forward(AutogradContext* context, const Tensor& qkv_bt3c, std::int64_t heads) {
    RECORD_FUNCTION("sidestream::attention", Inputs({qkv_bt3c}), node_number());
    Attended attended;
    with_element_type(qkv_bt3c.scalar_type(), [&]<typename T>(T*) {
      attended = forward_of<T>(qkv_bt3c, Layout(qkv_bt3c, heads));
    });
    context->save_for_backward({qkv_bt3c, attended.out_btc, attended.log_sum});
    context->saved_data["heads"] = heads;
    return attended.out_btc;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    RECORD_FUNCTION("sidestream::attention_backward", Inputs({saved[0], grads[0]}));
    const Layout layout(saved[0], context->saved_data["heads"].toInt());
    Tensor result;
    with_element_type(saved[0].scalar_type(), [&]<typename T>(T*) {
      result = backward_of<T>(saved[0], {saved[1], saved[2]}, grads[0].contiguous(), layout);
    });
    return {result, Tensor()};
  }
};

}  // namespace

Tensor attention(const Tensor& qkv_bt3c, std::int64_t heads) {
  return AttentionFunction::apply(qkv_bt3c.contiguous(), heads);
}

}  // namespace sidestream::model::fused
