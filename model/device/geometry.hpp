// How jobs are cut into blocks, threads and chunks, and what they have to be for that: decided in
// one place for the kernels and for what stands in for them in tests.
//
// The kernels are bound by memory. On an H100 some 20 KB have to be on their way to each
// multiprocessor at any time; a thread has one to fourteen loads of 16 bytes under way, so that
// some hundred threads do. Blocks of a row are therefore as small as its registers allow: many of
// them are on a multiprocessor at once, and while one waits for its sums, others load.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "core/base/multiple.hpp"
#include "model/device/block.hpp"
#include "model/device/device_kernels.hpp"
#include "model/device/held_row.hpp"

namespace sidestream::model::device {

constexpr std::int64_t kMostNormThreads = 512;  // leaves 128 registers for each
constexpr std::int64_t kElementThreads = 128;
constexpr std::int64_t kColumnSumThreads = 512;
constexpr std::int64_t kMostLossThreads = 512;

// Whether 16 bytes can be loaded at once there, as our kernels and NVIDIA's libraries do.
bool begins_a_chunk(const void* data);

using core::divided_up;

constexpr std::int64_t whole_warps(std::int64_t threads) {
  return std::max<std::int64_t>(1, divided_up(threads, kWarp)) * kWarp;
}

// Floats of a row that each thread holds, and with them its threads. Up to a width of 1792, in
// backward, which has sums of columns beside the row, up to 768, a row is one warp's: its sums need
// no barrier, and what every row costs anew is shared by many columns. A wider row has 16 a thread;
// a row of 257 to 512, though one warp's, too, shares the kernel of those, barrier and all.
constexpr int kHeldOfMany = 16;
static_assert(kWidestNorm == kMostNormThreads * kHeldOfMany);
enum class NormPass { kForward, kBackward };
template <NormPass kPass>
constexpr std::int64_t kWidestOfAWarp = kWarp*(kPass == NormPass::kForward ? 56 : 24);

constexpr int most_norm_threads(int held) {
  return held == kHeldOfMany ? static_cast<int>(kMostNormThreads) : kWarp;
}

// f(std::integral_constant<int, held>), held the least multiple of kHeldAtEnd that a warp needs.
template <NormPass kPass, int kHeld = kHeldAtEnd, typename Action>
constexpr auto with_norm_held(std::int64_t width, const Action& action) {
  if constexpr (kWarp * kHeld < kWidestOfAWarp<kPass>) {
    if (width > kWarp * kHeld && width <= kWidestOfAWarp<kPass>)
      return with_norm_held<kPass, kHeld + kHeldAtEnd>(width, action);
  }
  if (width > kWidestOfAWarp<kPass>) return action(std::integral_constant<int, kHeldOfMany>());
  return action(std::integral_constant<int, kHeld>());
}
template <NormPass kPass>
constexpr int norm_held(std::int64_t width) {
  return with_norm_held<kPass>(width, [](auto held) { return held(); });
}
template <NormPass kPass>
constexpr std::int64_t norm_threads(std::int64_t width) {
  return whole_warps(divided_up(width, norm_held<kPass>(width)));
}

// Into how many blocks rows are cut, and into how many partial sums they are added up: for each one
// a block, and for each 1024 columns. Of the shape alone, not of the device, because it decides the
// order of the additions; so many that an H100's 132 multiprocessors have all blocks at once in
// bf16, and none waits for a second round. What they write, a few MB, stays in the cache.
constexpr std::int64_t kMultiprocessors = 132;
constexpr std::int64_t blocks_for(std::int64_t rows, std::int64_t on_a_multiprocessor) {
  return std::min(rows, kMultiprocessors * std::max<std::int64_t>(1, on_a_multiprocessor));
}

// Of those that are a row's warp, no more than the registers of bf16 let be on a multiprocessor;
// the compiler is told to make do with those, which it does in bf16.
template <NormPass kPass>
constexpr int norm_warps_at_once(int held) {
  if (kPass == NormPass::kBackward) return 12;
  return held <= 24 ? 20 : held <= 32 ? 14 : held <= 40 ? 12 : 10;
}
// Wider ones have 768 threads there, in backward 512.
template <NormPass kPass>
constexpr std::int64_t norm_blocks(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kThreads = kPass == NormPass::kForward ? 768 : 512;
  return blocks_for(rows, width <= kWidestOfAWarp<kPass>
                              ? norm_warps_at_once<kPass>(norm_held<kPass>(width))
                              : kThreads / norm_threads<kPass>(width));
}
constexpr std::int64_t norm_parts(std::int64_t rows, std::int64_t width) {
  return norm_blocks<NormPass::kBackward>(rows, width);
}

// Of GELU's backward, of plain sums, and of positions in an embedding.
constexpr int kRowPartsAtOnce = 8;  // on a multiprocessor
constexpr std::int64_t row_parts(std::int64_t rows, std::int64_t width) {
  return std::min(rows, std::max<std::int64_t>(
                            1, kRowPartsAtOnce * kMultiprocessors / divided_up(width, 1024)));
}

// A block has one row of logits in its own memory at a time. Of GPT-2's vocabulary in 16 bits two
// are on a multiprocessor at once: while one waits for its next row or its sums, the other
// computes. Small vocabularies have a chunk for each thread. There are as many blocks as the device
// runs at once: no sum is of several rows, so that no bit depends on it.
std::int64_t loss_threads(std::int64_t stride, core::DType dtype);

// Null pointers are no obstacle. The first: of ranges whose last elements, too few for a chunk, go
// one by one.
Access access_of(std::initializer_list<const void*> ranges);
Access access_of(std::int64_t width, core::DType dtype, std::initializer_list<const void*> rows);

// Throws Error that names the kernel and what it wanted.
void require(bool holds, const char* kernel, const std::string& wanted);
void check(const NormForwardJob& job);
void check(const NormBackwardJob& job);
void check(const CrossEntropyJob& job);

}  // namespace sidestream::model::device
