// Softmax cross-entropy of one row of logits by the threads of a block, with the gradient written
// over the logits. The first pass finds maximum and sum together (online softmax, Milakov and
// Gimelshein 2018); the second reads again what has just been read, from the cache.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "model/device/block.hpp"
#include "model/device/fast_math.hpp"
#include "model/device/held_row.hpp"
#include "model/device/kernel_function.hpp"
#include "model/ignored_target.hpp"

namespace sidestream::model::device {

enum class Gradient { kNo, kYes };

// Row r of the logits begins at r * stride; stride a multiple of kChunk, base of 16 bytes.
template <typename T>
struct CrossEntropyRows {
  T* logits;
  const std::int64_t* targets;
  float* losses;            // -log softmax(logits)[target], one for each row
  std::int64_t stride;      // columns from vocab_size to here get gradient 0
  std::int64_t vocab_size;  // columns of the softmax
  float gradient_scale;
  const float* loss_scale;  // null: one
  Gradient gradient;
};

// A maximum, and the sum of exp(x - maximum).
using Softmax = Two;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kMasked = -std::numeric_limits<float>::infinity();
// Where a maximum begins: finite, so that exp(x - maximum) is no NaN before a first logit is there
// and while all of them are -inf. A NaN among the logits does not raise it, and gets into the sum.
constexpr float kLowest = std::numeric_limits<float>::lowest();

struct JoinSoftmax {
  SIDESTREAM_INLINE Softmax operator()(const Softmax& a, const Softmax& b) const {
    const float highest = fmaxf(a.first, b.first);
    return {highest,
            a.second * exponential(a.first - highest) + b.second * exponential(b.first - highest)};
  }
};

template <typename T>
struct LogitChunk {
  float at[kChunk<T>];

  // Padding columns are masked out.
  SIDESTREAM_INLINE LogitChunk(const Chunk<T>& chunk, std::int64_t column,
                               std::int64_t vocab_size) {
    widen_chunk(chunk, at);
    if (vocab_size >= column + kChunk<T>) return;
    for (int i = 0; i < kChunk<T>; ++i) {
      if (column + i >= vocab_size) at[i] = kMasked;
    }
  }

  SIDESTREAM_INLINE void join(Softmax& softmax) const {
    float highest = softmax.first;
    for (int i = 0; i < kChunk<T>; ++i) highest = fmaxf(highest, at[i]);
    if (highest > softmax.first) {
      softmax.second *= exponential(softmax.first - highest);
      softmax.first = highest;
    }
    for (int i = 0; i < kChunk<T>; ++i) softmax.second += exponential(at[i] - highest);
  }
};

// The gradient of a row's logits: softmax times `scale`, less `scale` at the target.
struct LogitGradient {
  float highest, factor, scale;  // factor: scale / sum of exponentials
  std::int64_t target, vocab_size;

  template <typename T>
  SIDESTREAM_INLINE Chunk<T> of(const LogitChunk<T>& logits, std::int64_t column) const {
    float gradient[kChunk<T>];
    for (int i = 0; i < kChunk<T>; ++i) gradient[i] = exponential(logits.at[i] - highest) * factor;
    const std::int64_t hit = target - column;
    if (hit >= 0 && hit < kChunk<T>) {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (i == hit) gradient[i] -= scale;
      }
    }
    if (vocab_size < column + kChunk<T>) {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (column + i >= vocab_size) gradient[i] = 0;
      }
    }
    return chunk_of<T>(gradient);
  }
};

// visit(column, chunk) for every chunk of a row that is a thread's, the next one under way
// meanwhile.
template <typename T, typename Visit>
SIDESTREAM_INLINE void each_chunk(const T* row, const Share& share, const Visit& visit) {
  const std::int64_t step = static_cast<std::int64_t>(share.threads) * kChunk<T>;
  std::int64_t column = static_cast<std::int64_t>(share.thread) * kChunk<T>;
  if (column >= share.width) return;
  Chunk<T> chunk = load_chunk(row + column);
  for (; column < share.width; column += step) {
    Chunk<T> next{};
    if (column + step < share.width) next = load_chunk(row + column + step);
    visit(column, chunk);
    chunk = next;
  }
}

// kIgnoredTarget makes loss and gradient of its row zero. Another target outside the vocabulary
// makes them NaN: nothing can be thrown without waiting for the device, and NaN is what the trainer
// looks for.
template <typename T, typename Block>
SIDESTREAM_KERNEL void cross_entropy_row(Block& block, const CrossEntropyRows<T>& rows,
                                         std::int64_t row) {
  T* logits = rows.logits + row * rows.stride;
  const std::int64_t target = rows.targets[row];
  const bool known = target >= 0 && target < rows.vocab_size;
  const bool counts = target != kIgnoredTarget;
  typename Block::template Local<float> target_logit(block);
  const auto softmax_of_share = [&](int thread) {
    // Before reduce(), after which others overwrite it.
    target_logit.of(thread) = known ? static_cast<float>(logits[target]) : kNotANumber;
    Softmax softmax{kLowest, 0};
    each_chunk(logits, Share{thread, block.threads(), rows.vocab_size},
               [&](std::int64_t column, const Chunk<T>& chunk) {
                 LogitChunk<T>(chunk, column, rows.vocab_size).join(softmax);
               });
    return softmax;
  };
  const Softmax softmax = block.reduce(softmax_of_share, JoinSoftmax());
  block.each([&](int thread) {
    const float loss = logf(softmax.second) - (target_logit.of(thread) - softmax.first);
    if (thread == 0) rows.losses[row] = counts ? loss : 0.0f;
    if (rows.gradient == Gradient::kNo) return;
    const float wanted =
        rows.loss_scale == nullptr ? rows.gradient_scale : rows.gradient_scale * *rows.loss_scale;
    const float scale = known ? wanted : kNotANumber;
    const LogitGradient gradient{softmax.first, scale / softmax.second, scale, target,
                                 rows.vocab_size};
    each_chunk(logits, Share{thread, block.threads(), rows.stride},
               [&](std::int64_t column, const Chunk<T>& chunk) {
                 const bool zero = !counts || column >= rows.vocab_size;
                 const LogitChunk<T> wide(chunk, column, rows.vocab_size);
                 store_chunk(logits + column, zero ? Chunk<T>{} : gradient.of(wide, column));
               });
  });
}

}  // namespace sidestream::model::device
