// Layer norm of rows by the threads of a block, and its backward, which sums the gradients of
// weight, bias and input over the rows of each block. A row stays in registers between its passes:
// memory is read once and written once. The next row is on its way into the block's own memory
// while one is computed. (Tried: into registers. Those leave fewer rows on a multiprocessor; on an
// H200 the kernels were slower by 15 and 25 %.)
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/square_root.hpp"
#include "model/device/block.hpp"
#include "model/device/fetched_row.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

// Sums over columns divided by their number, to the last bit but without a division for each row.
class Mean {
 public:
  SIDESTREAM_INLINE explicit Mean(std::int64_t width)
      : width_(static_cast<float>(width)), inverse_(1.0f / width_) {}

  // One step of Newton's after the product (Markstein 1990), which an infinite sum would make NaN.
  SIDESTREAM_INLINE float operator()(float sum) const {
    const float quotient = sum * inverse_;
    const float rest = std::fma(-quotient, width_, sum);
    return std::fabs(sum) <= kLargest ? std::fma(rest, inverse_, quotient) : quotient;
  }

 private:
  static constexpr float kLargest = std::numeric_limits<float>::max();
  float width_, inverse_;
};

// x = residual + branch, rounded to T; normed = (x - mean) rstd weight + bias, with the biased
// variance. Statistics and sums are fp32.
template <typename T>
struct NormForwardRows {
  const T* residual;
  const T* branch;  // null: x is the residual, and sum is not written
  const T* weight;
  const T* bias;
  T* sum;  // x
  T* normed;
  float* mean;  // of each row
  float* rstd;
  std::int64_t rows;
  std::int64_t width;
  float eps;
};
constexpr int kNormForwardOperands = 2;

// Null where there is no such row, or no such matrix.
template <typename T, typename Rows>
SIDESTREAM_INLINE const T* row_of(const Rows& rows, const T* matrix, std::int64_t row) {
  return matrix != nullptr && row < rows.rows ? matrix + row * rows.width : nullptr;
}

// Block `first` of `blocks` takes the rows first, first + blocks, ...
template <int kHeld, Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void norm_forward_rows(Block& block, const NormForwardRows<T>& rows,
                                         std::int64_t first, std::int64_t blocks) {
  using Held = HeldRow<T, kHeld, kAccess>;
  using Fetched = FetchedRow<T, kHeld, kAccess>;
  const auto share = [&](int thread) { return Share{thread, block.threads(), rows.width}; };
  const Mean mean_of(rows.width);
  typename Block::template Local<Held> x(block);
  typename Block::template Local<LoadedRow<T, kHeld, kAccess>> weight(block), bias(block);
  block.each([&](int thread) {
    weight.of(thread).load(rows.weight, share(thread));
    bias.of(thread).load(rows.bias, share(thread));
  });
  const auto fetch_first = [&](int thread) {
    Fetched::fetch(block, 0, row_of(rows, rows.residual, first), share(thread));
    Fetched::fetch(block, 1, row_of(rows, rows.branch, first), share(thread));
  };
  block.each(fetch_first);
  for (std::int64_t row = first; row < rows.rows; row += blocks) {
    const std::int64_t at = row * rows.width;
    const auto load_and_sum = [&](int thread) {
      if constexpr (Fetched::kAhead) block.wait_for_fetched(thread);
      const auto taken = [&](int operand, const T* matrix) {
        return Fetched::take(block, operand, matrix + at, row_of(rows, matrix, row + blocks),
                             share(thread));
      };
      Held& held = x.of(thread);
      held = taken(0, rows.residual);
      if (rows.branch != nullptr) {
        const Held branch = taken(1, rows.branch);
        for (int i = 0; i < kHeld; ++i) held.at[i] = rounded_to<T>(held.at[i] + branch.at[i]);
        held.store(rows.sum + at, share(thread));
      }
      return held.sum();
    };
    const float mean = mean_of(block.reduce(load_and_sum, Add()));
    const auto squares = [&](int thread) {
      return x.of(thread).sum_of_squares(mean, share(thread));
    };
    const float variance = mean_of(block.reduce(squares, Add()));
    const float rstd = 1.0f / core::square_root(variance + rows.eps);
    block.each([&](int thread) {
      Held& held = x.of(thread);
      const Held w = weight.of(thread).held(), b = bias.of(thread).held();
      for (int i = 0; i < kHeld; ++i) held.at[i] = (held.at[i] - mean) * rstd * w.at[i] + b.at[i];
      held.store(rows.normed + at, share(thread));
      if (thread == 0) {
        rows.mean[row] = mean;
        rows.rstd[row] = rstd;
      }
    });
  }
}

struct RowStatistics {
  float mean = 0, rstd = 0;
};

// With u = (x - mean) rstd and g = normed_grad * weight:
// x_grad = rstd (g - mean(g) - u mean(g u)) + sum_grad.
template <typename T>
struct NormBackwardRows {
  const T* x;
  const T* normed_grad;
  const T* sum_grad;  // what arrives beside the norm, on the residual's way; null: nothing
  const T* weight;
  const float* mean;
  const float* rstd;
  T* x_grad;
  float* weight_partial;  // [blocks, width]: sums over the rows of each block
  float* bias_partial;
  float* x_partial;  // of x_grad, before it is rounded
  std::int64_t rows;
  std::int64_t width;

  SIDESTREAM_INLINE RowStatistics statistics_of(std::int64_t row) const {
    return row < rows ? RowStatistics{mean[row], rstd[row]} : RowStatistics{};
  }
};
// sum_grad, which is taken late, has the places of the last two in turn.
constexpr int kNormBackwardOperands = 4;

// Of a thread's columns, over the rows of its block.
template <typename T, int kHeld, Access kAccess>
struct NormColumnSums {
  HeldRow<T, kHeld, kAccess> weight, bias, x;

  SIDESTREAM_INLINE void clear() {
    weight.clear();
    bias.clear();
    x.clear();
  }
  SIDESTREAM_INLINE void store(const NormBackwardRows<T>& rows, std::int64_t block,
                               const Share& share) const {
    weight.store_wide(rows.weight_partial + block * rows.width, share);
    bias.store_wide(rows.bias_partial + block * rows.width, share);
    x.store_wide(rows.x_partial + block * rows.width, share);
  }
};

// Block `first` of `blocks` takes the rows first, first + blocks, ...
template <int kHeld, Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void norm_backward_rows(Block& block, const NormBackwardRows<T>& rows,
                                          std::int64_t first, std::int64_t blocks) {
  using Held = HeldRow<T, kHeld, kAccess>;
  using Fetched = FetchedRow<T, kHeld, kAccess>;
  const auto share = [&](int thread) { return Share{thread, block.threads(), rows.width}; };
  const Mean mean_of(rows.width);
  typename Block::template Local<NormColumnSums<T, kHeld, kAccess>> columns(block);
  typename Block::template Local<Held> unit(block), gradient(block);
  typename Block::template Local<LoadedRow<T, kHeld, kAccess>> weight(block);
  block.each([&](int thread) {
    weight.of(thread).load(rows.weight, share(thread));
    columns.of(thread).clear();
    Fetched::fetch(block, 0, row_of(rows, rows.x, first), share(thread));
    Fetched::fetch(block, 1, row_of(rows, rows.normed_grad, first), share(thread));
    Fetched::fetch(block, 2, row_of(rows, rows.sum_grad, first), share(thread));
  });
  int beside = 2;  // the operand of this row's sum_grad
  RowStatistics next = rows.statistics_of(first);
  for (std::int64_t row = first; row < rows.rows; row += blocks, beside ^= 1) {
    const std::int64_t at = row * rows.width;
    const float mean = next.mean, rstd = next.rstd;
    next = rows.statistics_of(row + blocks);
    // Columns past the width have no gradient and no weight: they add nothing to any sum.
    const auto load_and_sum = [&](int thread) {
      if constexpr (Fetched::kAhead) block.wait_for_fetched(thread);
      const auto taken = [&](int operand, const T* matrix) {
        return Fetched::take(block, operand, matrix + at, row_of(rows, matrix, row + blocks),
                             share(thread));
      };
      Held &u = unit.of(thread), &g = gradient.of(thread);
      u = taken(0, rows.x);
      g = taken(1, rows.normed_grad);
      Fetched::fetch(block, beside ^ 1, row_of(rows, rows.sum_grad, row + blocks), share(thread));
      const Held w = weight.of(thread).held();
      Two sums{0, 0};
      for (int i = 0; i < kHeld; ++i) {
        u.at[i] = (u.at[i] - mean) * rstd;
        columns.of(thread).weight.at[i] += g.at[i] * u.at[i];
        columns.of(thread).bias.at[i] += g.at[i];
        g.at[i] *= w.at[i];
        sums.first += g.at[i];
        sums.second += g.at[i] * u.at[i];
      }
      return sums;
    };
    const Two sums = block.reduce(load_and_sum, Add());
    const float mean_g = mean_of(sums.first), mean_gu = mean_of(sums.second);
    block.each([&](int thread) {
      const Held& u = unit.of(thread);
      Held& g = gradient.of(thread);
      for (int i = 0; i < kHeld; ++i) g.at[i] = rstd * (g.at[i] - mean_g - u.at[i] * mean_gu);
      if (rows.sum_grad != nullptr)
        g.add(Fetched::take(block, beside, rows.sum_grad + at, nullptr, share(thread)));
      g.store(rows.x_grad + at, share(thread));
      columns.of(thread).x.add(g);
    });
  }
  block.each([&](int thread) { columns.of(thread).store(rows, first, share(thread)); });
}

}  // namespace sidestream::model::device
