// One head of causal attention, forward and backward, on raw memory. Owned by one thread.
#pragma once

#include <array>
#include <cstdint>

#include <torch/types.h>

#include "model/fused/block_product.hpp"
#include "model/kernels/prefetch.hpp"

namespace sidestream::model::fused {

struct HeadShape {
  std::int64_t time = 0, width = 0;  // of one head
  std::int64_t qkv_stride = 0;  // elements between two positions of q, k, v and of their gradients
  std::int64_t out_stride = 0;  // the same for the output and its gradient
  float scale = 1;              // of the scores

  // Positions rounded up to what the blocks want.
  std::int64_t padded_time() const { return (time + 31) / 32 * 32; }
};

template <typename T>
struct HeadForward {
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  T* out = nullptr;
  float* log_sum = nullptr;  // [T]
};

template <typename T>
struct HeadBackward {
  const T *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *out_grad = nullptr;
  const float* log_sum = nullptr;
  T *q_grad = nullptr, *k_grad = nullptr, *v_grad = nullptr;
};

// Positions that are worked on at a time.
struct HeadBlock {
  std::int64_t first = 0, count = 0;
};

// Scratch for one head at a time, kept from head to head.
template <typename T>
class ForwardHead {
 public:
  explicit ForwardHead(const HeadShape& shape);
  // Fetches what the next head reads while it computes.
  void run(const HeadForward<T>& head, const HeadForward<T>& next);

 private:
  void run_queries(const HeadForward<T>& head, const HeadForward<T>& next, HeadBlock block);

  HeadShape shape_;
  torch::Tensor keys_panel_, values_panel_, scores_, weights_, out_tile_, inverse_sum_;
};

template <typename T>
class BackwardHead {
 public:
  explicit BackwardHead(const HeadShape& shape);
  // Fetches what the next head reads while it computes.
  void run(const HeadBackward<T>& head, const HeadBackward<T>& next);

 private:
  void pack(const HeadBackward<T>& head);
  std::array<kernels::RowsAhead, 5> ahead_of(const HeadBackward<T>& next, HeadBlock block) const;
  void run_keys(const HeadBackward<T>& head, const HeadBackward<T>& next, HeadBlock block);
  // left right, a block's rows of the gradient of keys or values.
  void write_rows(const torch::Tensor& left, const torch::Tensor& right, HeadBlock block,
                  T* target);
  void write_query_grads(T* q_grad);

  HeadShape shape_;
  torch::Tensor queries_t_panel_, out_grad_t_panel_, queries_panel_, out_grad_panel_, keys_t_;
  torch::Tensor scores_, probability_grads_, probabilities_, score_grads_, score_grads_panel_;
  torch::Tensor tile_, query_grads_t_, query_grads_, log_sum_, delta_;
};

}  // namespace sidestream::model::fused
