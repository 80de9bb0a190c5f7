// Softmax cross-entropy of rows of logits by the threads of a block, one row after another, with
// the gradient written over the logits. The first pass over a row finds maximum and sum together
// (online softmax, Milakov and Gimelshein 2018), the second writes the gradient. Between them a row
// lies in the block's own memory, as far as it fits: it comes from the device's memory once, and
// while the second pass leaves a place, the next row arrives there.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "model/device/block.hpp"
#include "model/device/fast_math.hpp"
#include "model/device/kernel_function.hpp"
#include "model/device/narrow.hpp"
#include "model/device/not_a_number.hpp"
#include "model/ignored_target.hpp"

namespace sidestream::model::device {

enum class Gradient { kNo, kYes };

// Row r of the logits begins at r * stride; stride a multiple of kChunk, base of 16 bytes.
template <typename T>
struct CrossEntropyRows {
  T* logits;
  const std::int64_t* targets;
  float* losses;  // -log softmax(logits)[target], one for each row
  std::int64_t rows;
  std::int64_t stride;      // columns from vocab_size to here get gradient 0
  std::int64_t vocab_size;  // columns of the softmax
  float gradient_scale;
  const float* loss_scale;  // null: one
  Gradient gradient;
  std::int64_t held;  // chunks of a row that the block's memory has places for
};

// A maximum, and the sum of exp(x - maximum).
using Softmax = Two;

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

// Whether all columns of a chunk are of the vocabulary. Only the last chunk of a row may have
// others, which pad: what they cost is not asked of the rest.
enum class ChunkKind { kWhole, kLast };

template <typename T>
struct LogitChunk {
  float at[kChunk<T>];

  // Padding columns are masked out; `logits`: columns of the vocabulary from this chunk on.
  template <ChunkKind kKind>
  SIDESTREAM_INLINE static LogitChunk of(const Chunk<T>& chunk, int logits) {
    LogitChunk wide;
    widen_chunk(chunk, wide.at);
    if constexpr (kKind == ChunkKind::kLast) {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (i >= logits) wide.at[i] = kMasked;
      }
    }
    return wide;
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

// The gradient of a row's logits but its target's: softmax times a scale.
struct LogitGradient {
  float highest, factor;  // factor: scale / sum of exponentials

  SIDESTREAM_INLINE float of(float logit) const { return exponential(logit - highest) * factor; }

  template <ChunkKind kKind, typename T>
  SIDESTREAM_INLINE Chunk<T> of(const Chunk<T>& chunk, int logits) const {
    const auto wide = LogitChunk<T>::template of<kKind>(chunk, logits);
    float gradient[kChunk<T>];
    for (int i = 0; i < kChunk<T>; ++i) gradient[i] = of(wide.at[i]);
    if constexpr (kKind == ChunkKind::kLast) {
      for (int i = 0; i < kChunk<T>; ++i) {
        if (i >= logits) gradient[i] = 0;
      }
    }
    return chunk_of<T>(gradient);
  }
};

// After the last one over a row, its places are the next row's.
enum class RowPass { kFirst, kLast };

// One row as a block goes through it. Chunk c of a row is that of thread c % threads in every pass:
// a place of the block's memory is one thread's alone, who waits for what it fetched itself, and
// for nobody else.
template <typename T, typename Block>
class LogitRow {
 public:
  SIDESTREAM_KERNEL LogitRow(Block& block, const CrossEntropyRows<T>& rows, std::int64_t row,
                             std::int64_t next)
      : block_(block),
        row_(rows.logits + row * rows.stride),
        next_(next < rows.rows ? rows.logits + next * rows.stride : nullptr),
        held_(static_cast<int>(rows.held)),
        logits_(static_cast<int>(rows.vocab_size)),
        whole_(logits_ / kChunk<T>),
        chunks_((logits_ + kChunk<T> - 1) / kChunk<T>) {}

  SIDESTREAM_KERNEL T* begin() const { return row_; }

  // The thread that has the chunk of a column.
  SIDESTREAM_KERNEL int thread_of(std::int64_t column) const {
    return static_cast<int>(column / kChunk<T>) % block_.threads();
  }

  // A thread's chunks, all that have a place, on their way.
  SIDESTREAM_KERNEL void fetch(int thread) const {
    for (int c = thread; c < held_; c += block_.threads())
      block_.fetch(thread, c, row_ + column_of(c));
  }
  SIDESTREAM_KERNEL void fetch_next(int thread) const {
    for (int c = thread; c < held_; c += block_.threads()) fetch_next(thread, c);
  }

  // visit(kind, place, chunk, logits) for a thread's chunks that have a logit: where they lie, what
  // lies there, and as LogitChunk says.
  template <RowPass kPass, typename Visit>
  SIDESTREAM_KERNEL void each_chunk(int thread, const Visit& visit) const {
    const int held_whole = held_ < whole_ ? held_ : whole_;
    int c = thread;
    for (; c < held_whole; c += block_.threads())
      visit_held<kPass, ChunkKind::kWhole>(thread, c, visit);
    for (; c < whole_; c += block_.threads())
      visit(Kind<ChunkKind::kWhole>(), place_of(c), load_chunk(place_of(c)), kChunk<T>);
    if (c != whole_ || whole_ == chunks_) return;
    if (c < held_)
      visit_held<kPass, ChunkKind::kLast>(thread, c, visit);
    else
      visit(Kind<ChunkKind::kLast>(), place_of(c), load_chunk(place_of(c)),
            logits_ - c * kChunk<T>);
  }

  // visit(column) for a thread's chunks of padding up to the stride.
  template <typename Visit>
  SIDESTREAM_KERNEL void each_padding_chunk(int thread, std::int64_t stride,
                                            const Visit& visit) const {
    const int threads = block_.threads();
    int c = thread;
    if (c < chunks_) c += (chunks_ - c + threads - 1) / threads * threads;
    for (; column_of(c) < stride; c += threads) visit(column_of(c));
  }

 private:
  template <ChunkKind kKind>
  using Kind = std::integral_constant<ChunkKind, kKind>;

  template <RowPass kPass, ChunkKind kKind, typename Visit>
  SIDESTREAM_KERNEL void visit_held(int thread, int c, const Visit& visit) const {
    const Chunk<T> chunk = block_.template fetched<T>(thread, c);
    if constexpr (kPass == RowPass::kLast) fetch_next(thread, c);
    visit(Kind<kKind>(), place_of(c), chunk, logits_ - c * kChunk<T>);
  }
  SIDESTREAM_KERNEL T* place_of(int c) const { return row_ + column_of(c); }
  SIDESTREAM_KERNEL static std::int64_t column_of(int c) {
    return static_cast<std::int64_t>(c) * kChunk<T>;
  }
  SIDESTREAM_KERNEL void fetch_next(int thread, int c) const {
    if (next_ != nullptr) block_.fetch(thread, c, next_ + column_of(c));
  }

  Block& block_;
  T* row_;
  const T* next_;  // null: this is the block's last row
  int held_, logits_;
  int whole_, chunks_;  // of logits alone, with a logit
};

// kIgnoredTarget makes loss and gradient of its row zero. Another target outside the vocabulary
// makes them NaN: nothing can be thrown without waiting for the device, and NaN is what the trainer
// looks for.
template <typename T, typename Block>
SIDESTREAM_KERNEL void cross_entropy_row(Block& block, const CrossEntropyRows<T>& rows,
                                         std::int64_t row, std::int64_t next) {
  const LogitRow<T, Block> logits(block, rows, row, next);
  const std::int64_t target = rows.targets[row];
  const bool known = target >= 0 && target < rows.vocab_size;
  const bool counts = target != kIgnoredTarget;
  const auto softmax_of_share = [&](int thread) {
    block.wait_for_fetched(thread);
    Softmax softmax{kLowest, 0};
    logits.template each_chunk<RowPass::kFirst>(
        thread, [&](auto kind, const T*, const Chunk<T>& chunk, int left) {
          LogitChunk<T>::template of<decltype(kind)::value>(chunk, left).join(softmax);
        });
    return softmax;
  };
  const Softmax softmax = block.reduce(softmax_of_share, JoinSoftmax());
  block.each([&](int thread) {
    // Who has the chunk of the target reads its logit, which nobody else writes over, and writes
    // the loss, at last: the logit takes a while to come.
    const bool has_target = thread == (known ? logits.thread_of(target) : 0);
    const float logit =
        known && has_target ? static_cast<float>(logits.begin()[target]) : kNotANumber;
    const auto write_loss = [&] {
      const float loss = logf(softmax.second) - (logit - softmax.first);
      if (has_target) rows.losses[row] = counts ? loss : 0.0f;
    };
    if (rows.gradient == Gradient::kNo) {
      logits.fetch_next(thread);
      return write_loss();
    }
    const float wanted =
        rows.loss_scale == nullptr ? rows.gradient_scale : rows.gradient_scale * *rows.loss_scale;
    const float scale = known ? wanted : kNotANumber;
    const LogitGradient gradient{softmax.first, scale / softmax.second};
    if (counts) {
      logits.template each_chunk<RowPass::kLast>(
          thread, [&](auto kind, T* place, const Chunk<T>& chunk, int left) {
            store_chunk(place, gradient.of<decltype(kind)::value>(chunk, left));
          });
      if (known && has_target) logits.begin()[target] = T(gradient.of(logit) - scale);
    } else {
      logits.template each_chunk<RowPass::kLast>(
          thread, [&](auto, T* place, const Chunk<T>&, int) { store_chunk(place, Chunk<T>{}); });
    }
    logits.each_padding_chunk(thread, rows.stride, [&](std::int64_t column) {
      store_chunk(logits.begin() + column, Chunk<T>{});
    });
    write_loss();
  });
}

// The rows first, first + step, ... of a block.
template <typename T, typename Block>
SIDESTREAM_KERNEL void cross_entropy_rows(Block& block, const CrossEntropyRows<T>& rows,
                                          std::int64_t first, std::int64_t step) {
  if (first >= rows.rows) return;
  block.each([&](int thread) { LogitRow<T, Block>(block, rows, first, rows.rows).fetch(thread); });
  for (std::int64_t row = first; row < rows.rows; row += step)
    cross_entropy_row(block, rows, row, row + step);
}

}  // namespace sidestream::model::device
