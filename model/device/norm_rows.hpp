// Layer norm of rows by the threads of a block, and its backward, which sums the gradients of
// weight and bias over the rows of each block. A row stays in registers between its passes: memory
// is read once and written once, and while a row is computed the next one is on its way.
#pragma once

#include <cstdint>

#include "core/base/square_root.hpp"
#include "model/device/block.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"

namespace sidestream::model::device {

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

// A row on its way while the one before it is computed.
template <typename T, int kHeld, Access kAccess>
struct NormForwardLoads {
  LoadedRow<T, kHeld, kAccess> residual, branch;

  SIDESTREAM_INLINE void load(const NormForwardRows<T>& rows, std::int64_t row,
                              const Share& share) {
    residual.load(rows.residual + row * rows.width, share);
    if (rows.branch != nullptr) branch.load(rows.branch + row * rows.width, share);
  }
};

// Block `first` of `blocks` takes the rows first, first + blocks, ...
template <int kHeld, Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void norm_forward_rows(Block& block, const NormForwardRows<T>& rows,
                                         std::int64_t first, std::int64_t blocks) {
  using Held = HeldRow<T, kHeld, kAccess>;
  const auto share = [&](int thread) { return Share{thread, block.threads(), rows.width}; };
  const float width = static_cast<float>(rows.width);
  typename Block::template Local<Held> x(block);
  typename Block::template Local<NormForwardLoads<T, kHeld, kAccess>> next(block);
  typename Block::template Local<LoadedRow<T, kHeld, kAccess>> weight(block), bias(block);
  block.each([&](int thread) {
    weight.of(thread).load(rows.weight, share(thread));
    bias.of(thread).load(rows.bias, share(thread));
    if (first < rows.rows) next.of(thread).load(rows, first, share(thread));
  });
  for (std::int64_t row = first; row < rows.rows; row += blocks) {
    const std::int64_t at = row * rows.width;
    const auto add_and_sum = [&](int thread) {
      Held& held = x.of(thread);
      held = next.of(thread).residual.held();
      Held branch;
      if (rows.branch != nullptr) branch = next.of(thread).branch.held();
      if (row + blocks < rows.rows) next.of(thread).load(rows, row + blocks, share(thread));
      if (rows.branch != nullptr) {
        for (int i = 0; i < kHeld; ++i) held.at[i] = rounded_to<T>(held.at[i] + branch.at[i]);
        held.store(rows.sum + at, share(thread));
      }
      return held.sum();
    };
    const float mean = block.reduce(add_and_sum, Add()) / width;
    const auto squares = [&](int thread) {
      return x.of(thread).sum_of_squares(mean, share(thread));
    };
    const float variance = block.reduce(squares, Add()) / width;
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
  std::int64_t rows;
  std::int64_t width;
};

// A row on its way while the one before it is computed.
template <typename T, int kHeld, Access kAccess>
struct NormBackwardLoads {
  LoadedRow<T, kHeld, kAccess> x, normed_grad, sum_grad;
  float mean, rstd;

  SIDESTREAM_INLINE void load(const NormBackwardRows<T>& rows, std::int64_t row,
                              const Share& share) {
    x.load(rows.x + row * rows.width, share);
    normed_grad.load(rows.normed_grad + row * rows.width, share);
    if (rows.sum_grad != nullptr) sum_grad.load(rows.sum_grad + row * rows.width, share);
    mean = rows.mean[row];
    rstd = rows.rstd[row];
  }
};

// Block `first` of `blocks` takes the rows first, first + blocks, ...
template <int kHeld, Access kAccess, typename T, typename Block>
SIDESTREAM_KERNEL void norm_backward_rows(Block& block, const NormBackwardRows<T>& rows,
                                          std::int64_t first, std::int64_t blocks) {
  using Held = HeldRow<T, kHeld, kAccess>;
  const auto share = [&](int thread) { return Share{thread, block.threads(), rows.width}; };
  typename Block::template Local<Held> weight(block), weight_sum(block), bias_sum(block);
  typename Block::template Local<Held> unit(block), gradient(block);
  typename Block::template Local<NormBackwardLoads<T, kHeld, kAccess>> next(block);
  typename Block::template Local<LoadedRow<T, kHeld, kAccess>> beside(block);
  typename Block::template Local<float> rstd_now(block);
  block.each([&](int thread) {
    weight.of(thread).load(rows.weight, share(thread));
    weight_sum.of(thread).clear();
    bias_sum.of(thread).clear();
    if (first < rows.rows) next.of(thread).load(rows, first, share(thread));
  });
  for (std::int64_t row = first; row < rows.rows; row += blocks) {
    const std::int64_t at = row * rows.width;
    // Columns past the width have no gradient and no weight: they add nothing to any sum.
    const auto load_and_sum = [&](int thread) {
      Held &u = unit.of(thread), &g = gradient.of(thread);
      u = next.of(thread).x.held();
      g = next.of(thread).normed_grad.held();
      const float mean = next.of(thread).mean, rstd = next.of(thread).rstd;
      rstd_now.of(thread) = rstd;
      beside.of(thread) = next.of(thread).sum_grad;
      if (row + blocks < rows.rows) next.of(thread).load(rows, row + blocks, share(thread));
      Two sums{0, 0};
      for (int i = 0; i < kHeld; ++i) {
        u.at[i] = (u.at[i] - mean) * rstd;
        weight_sum.of(thread).at[i] += g.at[i] * u.at[i];
        bias_sum.of(thread).at[i] += g.at[i];
        g.at[i] *= weight.of(thread).at[i];
        sums.first += g.at[i];
        sums.second += g.at[i] * u.at[i];
      }
      return sums;
    };
    const Two sums = block.reduce(load_and_sum, Add());
    const float mean_g = sums.first / static_cast<float>(rows.width);
    const float mean_gu = sums.second / static_cast<float>(rows.width);
    block.each([&](int thread) {
      const Held& u = unit.of(thread);
      const float rstd = rstd_now.of(thread);
      Held& g = gradient.of(thread);
      for (int i = 0; i < kHeld; ++i) g.at[i] = rstd * (g.at[i] - mean_g - u.at[i] * mean_gu);
      if (rows.sum_grad != nullptr) {
        const Held more = beside.of(thread).held();
        for (int i = 0; i < kHeld; ++i) g.at[i] += more.at[i];
      }
      g.store(rows.x_grad + at, share(thread));
    });
  }
  block.each([&](int thread) {
    weight_sum.of(thread).store_wide(rows.weight_partial + first * rows.width, share(thread));
    bias_sum.of(thread).store_wide(rows.bias_partial + first * rows.width, share(thread));
  });
}

}  // namespace sidestream::model::device
