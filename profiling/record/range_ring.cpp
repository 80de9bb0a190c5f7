#include "profiling/record/range_ring.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace sidestream::record {

void RangeRing::Unmap::operator()(PackedRange* slots) const noexcept { ::munmap(slots, bytes); }

std::unique_ptr<PackedRange[], RangeRing::Unmap> RangeRing::untouched(std::size_t capacity) {
  const std::size_t bytes = capacity * sizeof(PackedRange);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<PackedRange*>(memory), Unmap{bytes}};
}

RangeRing::RangeRing(std::size_t capacity) : capacity_(capacity), slots_(untouched(capacity)) {}

void RangeRing::push(const RangeRecord& record) noexcept {
  const std::uint64_t index = written_.load(std::memory_order_relaxed);  // nobody else writes it
  std::atomic_thread_fence(std::memory_order_release);
  store_range(slot(index), record);
  written_.store(index + 1, std::memory_order_release);
}

RangeRing::Taken RangeRing::take() {
  Taken result;
  const std::uint64_t end = written_.load(std::memory_order_acquire);
  const std::uint64_t begin = std::max(taken_, end > capacity_ ? end - capacity_ : 0);
  result.records.reserve(end - begin);
  for (std::uint64_t index = begin; index < end; ++index)
    result.records.push_back(load_range(slot(index)));
  std::atomic_thread_fence(std::memory_order_acquire);
  // The writer may be inside the slot of the index that it has not published yet.
  const std::uint64_t now = written_.load(std::memory_order_relaxed) + 1;
  const std::uint64_t safe = std::clamp(now > capacity_ ? now - capacity_ : 0, begin, end);
  result.records.erase(result.records.begin(),
                       result.records.begin() + static_cast<std::ptrdiff_t>(safe - begin));
  result.dropped = safe - taken_;
  if (result.dropped > 0 && !result.records.empty())
    result.complete_from_ns = result.records.front().end_ns;  // a thread's ranges end in order
  taken_ = end;
  return result;
}

}  // namespace sidestream::record
