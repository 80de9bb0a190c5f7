#include "model/fused/attention_head.hpp"

#include <algorithm>

#include "core/base/multiple.hpp"
#include "model/kernels/attention_rows.hpp"
#include "model/kernels/epilogue.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {
namespace {

constexpr std::int64_t kBlock = 64;  // queries in the forward pass, keys in the backward pass
constexpr std::int64_t kStep = 32;

// A block's part of a matrix [T, width].
template <typename T>
kernels::RowsAhead rows_ahead(const T* data, std::int64_t stride, std::int64_t width,
                              HeadBlock block) {
  constexpr std::int64_t kBytes = sizeof(T);
  return {.data = data + block.first * stride,
          .stride_bytes = stride * kBytes,
          .bytes = width * kBytes,
          .rows = block.count};
}

}  // namespace

template <typename T>
ForwardHead<T>::ForwardHead(const HeadShape& shape) : shape_(shape) {
  const std::int64_t time = shape.padded_time();
  keys_panel_ = scratch<T>(time * shape.width);
  values_panel_ = scratch<T>(time * shape.width);
  scores_ = scratch<float>(kBlock * time);
  weights_ = std::is_same_v<T, float> ? scores_ : scratch<T>(kBlock * time);
  out_tile_ = scratch<float>(kBlock * shape.width);
  inverse_sum_ = scratch<float>(kBlock);
}

template <typename T>
void ForwardHead<T>::run(const HeadForward<T>& head, const HeadForward<T>& next) {
  const std::int64_t time = shape_.padded_time(), width = shape_.width;
  kernels::pack_transposed(head.k, shape_.qkv_stride,
                           {.k = width, .n = shape_.time, .padded_k = width, .width = time},
                           data_of<T>(keys_panel_));
  kernels::pack_rows(head.v, shape_.qkv_stride,
                     {.k = shape_.time, .n = width, .padded_k = time, .width = width},
                     data_of<T>(values_panel_));
  for (std::int64_t query = 0; query < shape_.time; query += kBlock) {
    run_queries(head, next, {query, std::min(kBlock, shape_.time - query)});
  }
}

template <typename T>
void ForwardHead<T>::run_queries(const HeadForward<T>& head, const HeadForward<T>& next,
                                 HeadBlock block) {
  const std::int64_t first_query = block.first, queries = block.count;
  const std::int64_t time = shape_.padded_time(), width = shape_.width;
  const std::int64_t keys = core::rounded_up(first_query + queries, kStep);
  float* scores = data_of<float>(scores_);
  T* weights = data_of<T>(weights_);
  float* inverse_sum = data_of<float>(inverse_sum_);
  multiply(BlockProduct<T>{.m = queries,
                           .n = keys,
                           .k = width,
                           .a = head.q + first_query * shape_.qkv_stride,
                           .a_stride = shape_.qkv_stride,
                           .b = data_of<T>(keys_panel_),
                           .b_stride = time,
                           .c = scores,
                           .c_stride = time});
  kernels::softmax_causal({.scores = scores,
                           .stride = time,
                           .queries = queries,
                           .first_query = first_query,
                           .columns = keys,
                           .scale = shape_.scale,
                           .ahead = {rows_ahead(next.q, shape_.qkv_stride, width, block),
                                     rows_ahead(next.k, shape_.qkv_stride, width, block),
                                     rows_ahead(next.v, shape_.qkv_stride, width, block)}},
                          kernels::Weights<T>{.data = weights,
                                              .stride = time,
                                              .inverse_sum = inverse_sum,
                                              .log_sum = head.log_sum + first_query});
  float* tile = data_of<float>(out_tile_);
  multiply(BlockProduct<T>{.m = queries,
                           .n = width,
                           .k = keys,
                           .a = weights,
                           .a_stride = time,
                           .b = data_of<T>(values_panel_),
                           .b_stride = width,
                           .c = tile,
                           .c_stride = width});
  kernels::store_scaled(
      {.data = tile, .stride = width, .rows = queries, .columns = width}, inverse_sum,
      kernels::Rows<T>{head.out + first_query * shape_.out_stride, shape_.out_stride});
}

template <typename T>
BackwardHead<T>::BackwardHead(const HeadShape& shape) : shape_(shape) {
  const std::int64_t time = shape.padded_time(), head = time * shape.width, block = kBlock * time;
  for (torch::Tensor* panel :
       {&queries_t_panel_, &out_grad_t_panel_, &queries_panel_, &out_grad_panel_, &keys_t_}) {
    *panel = scratch<T>(head);
  }
  scores_ = scratch<float>(block);
  probability_grads_ = scratch<float>(block);
  if constexpr (std::is_same_v<T, float>) {  // in place
    probabilities_ = scores_;
    score_grads_ = score_grads_panel_ = probability_grads_;
  } else {
    probabilities_ = scratch<T>(block);
    score_grads_ = scratch<T>(block);
    score_grads_panel_ = scratch<T>(block);
  }
  tile_ = scratch<float>(kBlock * shape.width);
  query_grads_t_ = scratch<float>(head);
  query_grads_ = scratch<float>(head);
  log_sum_ = at::zeros({time}, at::kFloat);
  delta_ = at::zeros({time}, at::kFloat);
}

template <typename T>
void BackwardHead<T>::run(const HeadBackward<T>& head, const HeadBackward<T>& next) {
  pack(head);
  query_grads_t_.zero_();
  for (std::int64_t key = 0; key < shape_.time; key += kBlock) {
    run_keys(head, next, {key, std::min(kBlock, shape_.time - key)});
  }
  write_query_grads(head.q_grad);
}

template <typename T>
void BackwardHead<T>::pack(const HeadBackward<T>& head) {
  const std::int64_t time = shape_.padded_time(), width = shape_.width;
  const kernels::PanelShape transposed{
      .k = width, .n = shape_.time, .padded_k = width, .width = time};
  const kernels::PanelShape rows{.k = shape_.time, .n = width, .padded_k = time, .width = width};
  kernels::pack_transposed(head.q, shape_.qkv_stride, transposed, data_of<T>(queries_t_panel_));
  kernels::pack_transposed(head.out_grad, shape_.out_stride, transposed,
                           data_of<T>(out_grad_t_panel_));
  kernels::pack_rows(head.q, shape_.qkv_stride, rows, data_of<T>(queries_panel_));
  kernels::pack_rows(head.out_grad, shape_.out_stride, rows, data_of<T>(out_grad_panel_));
  kernels::transpose(head.k, shape_.qkv_stride, {.rows = shape_.time, .columns = width},
                     data_of<T>(keys_t_), time);
  kernels::row_dots(kernels::RowPair<T>{.a = head.out,
                                        .b = head.out_grad,
                                        .stride = shape_.out_stride,
                                        .rows = shape_.time,
                                        .width = width},
                    data_of<float>(delta_));
  std::copy_n(head.log_sum, shape_.time, data_of<float>(log_sum_));
}

template <typename T>
std::array<kernels::RowsAhead, 5> BackwardHead<T>::ahead_of(const HeadBackward<T>& next,
                                                            HeadBlock block) const {
  const auto ahead = [&](const T* data, std::int64_t stride) {
    return rows_ahead(data, stride, shape_.width, block);
  };
  return {ahead(next.q, shape_.qkv_stride), ahead(next.k, shape_.qkv_stride),
          ahead(next.v, shape_.qkv_stride), ahead(next.out, shape_.out_stride),
          ahead(next.out_grad, shape_.out_stride)};
}

template <typename T>
void BackwardHead<T>::run_keys(const HeadBackward<T>& head, const HeadBackward<T>& next,
                               HeadBlock block) {
  const std::int64_t first_key = block.first, keys = block.count;
  const std::int64_t time = shape_.padded_time(), width = shape_.width, queries = time - first_key;
  const std::int64_t padded_keys = core::rounded_up(keys, kStep), pair = sizeof(T) == 2 ? 2 : 1;
  const T* k = head.k + first_key * shape_.qkv_stride;
  const T* v = head.v + first_key * shape_.qkv_stride;
  BlockProduct<T> scores{.m = keys,
                         .n = queries,
                         .k = width,
                         .a = k,
                         .a_stride = shape_.qkv_stride,
                         .b = data_of<T>(queries_t_panel_) + first_key * pair,
                         .b_stride = time,
                         .c = data_of<float>(scores_),
                         .c_stride = time};
  multiply(scores);
  scores.a = v;
  scores.b = data_of<T>(out_grad_t_panel_) + first_key * pair;
  scores.c = data_of<float>(probability_grads_);
  multiply(scores);
  kernels::softmax_causal_backward(
      {.scores = data_of<float>(scores_),
       .probability_grads = data_of<float>(probability_grads_),
       .stride = time,
       .keys = keys,
       .padded_keys = padded_keys,
       .queries = queries,
       .log_sum = data_of<float>(log_sum_) + first_key,
       .delta = data_of<float>(delta_) + first_key,
       .scale = shape_.scale,
       .ahead = ahead_of(next, block)},
      kernels::ScoreGradients<T>{.probabilities = data_of<T>(probabilities_),
                                 .score_grads = data_of<T>(score_grads_),
                                 .score_grads_panel = data_of<T>(score_grads_panel_)});
  write_rows(probabilities_, out_grad_panel_, block, head.v_grad);
  write_rows(score_grads_, queries_panel_, block, head.k_grad);
  multiply(BlockProduct<T>{.m = width,
                           .n = queries,
                           .k = padded_keys,
                           .a = data_of<T>(keys_t_) + first_key,
                           .a_stride = time,
                           .b = data_of<T>(score_grads_panel_),
                           .b_stride = time,
                           .c = data_of<float>(query_grads_t_) + first_key,
                           .c_stride = time,
                           .accumulate = Accumulate::kYes});
}

template <typename T>
void BackwardHead<T>::write_rows(const torch::Tensor& left, const torch::Tensor& right,
                                 HeadBlock block, T* target) {
  const std::int64_t time = shape_.padded_time(), width = shape_.width;
  float* tile = data_of<float>(tile_);
  multiply(BlockProduct<T>{.m = block.count,
                           .n = width,
                           .k = time - block.first,
                           .a = data_of<T>(left),
                           .a_stride = time,
                           .b = data_of<T>(right) + block.first * width,
                           .b_stride = width,
                           .c = tile,
                           .c_stride = width});
  kernels::store({.data = tile, .stride = width, .rows = block.count, .columns = width},
                 kernels::Rows<T>{target + block.first * shape_.qkv_stride, shape_.qkv_stride});
}

template <typename T>
void BackwardHead<T>::write_query_grads(T* q_grad) {
  const std::int64_t width = shape_.width;
  float* rows = data_of<float>(query_grads_);
  kernels::transpose(data_of<float>(query_grads_t_), shape_.padded_time(),
                     {.rows = width, .columns = shape_.time}, rows, width);
  kernels::store({.data = rows, .stride = width, .rows = shape_.time, .columns = width},
                 kernels::Rows<T>{q_grad, shape_.qkv_stride});
}

template class ForwardHead<float>;
template class ForwardHead<core::BFloat16>;
template class BackwardHead<float>;
template class BackwardHead<core::BFloat16>;

}  // namespace sidestream::model::fused
