// One range as it was recorded, and its packed form: six words that one thread writes while another
// may be reading them. Whether a copy is whole is the business of whoever holds the words.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "profiling/ranges/phases.hpp"
#include "profiling/record/names.hpp"

namespace sidestream::record {

struct RangeRecord {
  std::int64_t start_ns = 0;  // monotonic
  std::int64_t end_ns = 0;
  NameId name = kOtherName;
  bool has_payload = false;
  bool in_flight = false;  // an operation that may end on another thread: belongs to no thread
  bool open = false;       // had not ended when it was taken; not packed
  ranges::CollectivePayload payload = {};
};

// Whether two records of one thread, or of operations in flight, are of the same range: one taken
// while it was open, one when it had ended.
inline bool is_same_range(const RangeRecord& a, const RangeRecord& b) noexcept {
  return a.start_ns == b.start_ns && a.name == b.name && a.payload.sequence == b.payload.sequence &&
         a.payload.bucket == b.payload.bucket;
}

using PackedRange = std::array<std::uint64_t, 6>;

inline void store_range(PackedRange& words, const RangeRecord& record) noexcept {
  const auto put = [&](std::size_t word, auto value) {
    std::atomic_ref(words[word])
        .store(static_cast<std::uint64_t>(value), std::memory_order_relaxed);
  };
  const std::uint64_t bucket = static_cast<std::uint32_t>(record.payload.bucket);
  put(0, record.start_ns);
  put(1, record.end_ns);
  put(2, record.name);
  put(3, bucket << 32 | (record.has_payload ? 1U : 0U) | (record.in_flight ? 2U : 0U));
  put(4, record.payload.sequence);
  put(5, record.payload.bytes);
}

inline RangeRecord load_range(PackedRange& words) noexcept {
  const auto get = [&](std::size_t word) {
    return static_cast<std::int64_t>(std::atomic_ref(words[word]).load(std::memory_order_relaxed));
  };
  RangeRecord record;
  const std::int64_t flags = get(3);
  record.start_ns = get(0);
  record.end_ns = get(1);
  record.name = static_cast<NameId>(get(2));
  record.has_payload = (flags & 1) != 0;
  record.in_flight = (flags & 2) != 0;
  record.payload = {
      .bucket = static_cast<std::int32_t>(flags >> 32), .sequence = get(4), .bytes = get(5)};
  return record;
}

}  // namespace sidestream::record
