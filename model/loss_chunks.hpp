// How many rows of logits the head computes at once. No LibTorch in this header.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sidestream::model {

// What --loss-chunks auto lets a chunk of logits take: on a processor what its caches nearly hold,
// on a GPU so much that its products and sums fill the device (in chunks of 64 MiB the step of a
// GPT-2 124M took 6 % longer on an H200).
constexpr std::int64_t kLossChunkBytes = std::int64_t{64} << 20;
constexpr std::int64_t kDeviceLossChunkBytes = std::int64_t{1} << 30;

struct LossRows {
  std::int64_t rows = 0;           // of the whole loss, B T
  std::int64_t bytes_per_row = 0;  // of logits
  std::int64_t chunk_bytes = kLossChunkBytes;
};

// Rows of a chunk; the last chunk may have fewer. chunks > 0: as many as make at most so many
// chunks of equal size; with more chunks than rows, each row is one. 0: as many as fit in
// chunk_bytes, in steps of 64 and at least 64.
inline std::int64_t rows_of_loss_chunk(const LossRows& loss, std::int64_t chunks) {
  if (chunks > 0) return (loss.rows + chunks - 1) / chunks;
  const std::int64_t fits = loss.chunk_bytes / loss.bytes_per_row / 64 * 64;
  return std::min(std::max<std::int64_t>(fits, 64), loss.rows);
}

}  // namespace sidestream::model
