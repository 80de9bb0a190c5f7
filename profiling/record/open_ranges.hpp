// The ranges that a thread is inside of, innermost last: pushed and popped by that thread without a
// lock, readable by another one, so that a recording of a program that hangs says where it hangs.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiling/record/range_record.hpp"

namespace sidestream::record {

class OpenRanges {
 public:
  static constexpr std::size_t kDeepest = 64;  // below that ranges are counted, not kept

  void push(const RangeRecord& range) noexcept {
    const std::size_t depth = this->depth();
    if (depth < kDeepest) {
      change();
      store_range(frames_[depth], range);
      depth_.store(depth + 1, std::memory_order_relaxed);
      change();
    } else {
      depth_.store(depth + 1, std::memory_order_relaxed);
    }
  }

  // The innermost; nothing where it was too deep to be kept, or nothing is open. By the owner.
  std::optional<RangeRecord> top() noexcept {
    const std::size_t depth = this->depth();
    if (depth == 0 || depth > kDeepest) return std::nullopt;
    return load_range(frames_[depth - 1]);
  }

  // What the owner wrote before it is seen by whoever no longer sees the range.
  void pop() noexcept {
    const std::size_t depth = this->depth();
    if (depth > 0) depth_.store(depth - 1, std::memory_order_release);
  }

  std::size_t depth() const noexcept { return depth_.load(std::memory_order_acquire); }

  // The name of the innermost; by the owner.
  NameId innermost() noexcept {
    const std::size_t depth = this->depth();
    return depth == 0 || depth > kDeepest ? kOtherName : load_range(frames_[depth - 1]).name;
  }

  // The name of the first that was opened; by the owner.
  NameId outermost() noexcept { return depth() == 0 ? kOtherName : load_range(frames_[0]).name; }

  // From any thread. Empty when the owner opens ranges faster than they can be looked at: then
  // nothing hangs there.
  std::vector<RangeRecord> look() {
    constexpr int kTries = 16;
    for (int i = 0; i < kTries; ++i) {
      const std::uint64_t before = changes_.load(std::memory_order_acquire);
      std::vector<RangeRecord> found;
      for (std::size_t at = 0; at < std::min(depth(), kDeepest); ++at)
        found.push_back(load_range(frames_[at]));
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && changes_.load(std::memory_order_relaxed) == before) return found;
    }
    return {};
  }

 private:
  void change() noexcept {
    std::atomic_thread_fence(std::memory_order_release);
    changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_release);
  }

  std::atomic<std::uint64_t> changes_{0};  // odd: a range is being written
  std::atomic<std::size_t> depth_{0};
  std::array<PackedRange, kDeepest> frames_ = {};
};

}  // namespace sidestream::record
