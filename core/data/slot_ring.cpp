#include "core/data/slot_ring.hpp"

#include <cstdlib>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/multiple.hpp"

namespace sidestream::data {

SlotAllocator SlotAllocator::heap() {
  return {
      .allocate =
          [](std::size_t bytes) { return std::aligned_alloc(SlotRing::kAlignmentBytes, bytes); },
      .release = [](void* memory, std::size_t) { std::free(memory); }};
}

SlotRing::SlotRing(std::size_t slots, std::size_t slot_bytes, SlotAllocator allocator)
    : slot_bytes_(core::rounded_up(slot_bytes, kAlignmentBytes)),
      allocator_(std::move(allocator)),
      states_(slots) {
  const std::size_t bytes = slots * slot_bytes_;
  void* memory = allocator_.allocate(bytes);
  if (memory == nullptr) {
    throw core::MemoryError("no memory for " + std::to_string(bytes) +
                            " bytes of batches; use fewer --prefetch");
  }
  if (reinterpret_cast<std::uintptr_t>(memory) % kAlignmentBytes != 0) {
    allocator_.release(memory, bytes);
    throw core::Error(
        "the allocator of batch slots returned memory that is not aligned to 64 bytes");
  }
  memory_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < slots; ++i) states_[i].ticket = i;
}

SlotRing::~SlotRing() { allocator_.release(memory_, states_.size() * slot_bytes_); }

bool SlotRing::may_fill(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  return state(ticket).ticket == ticket && state(ticket).phase == Phase::kFree;
}

std::byte* SlotRing::wait_free(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  State& slot = state(ticket);
  freed_.wait(lock,
              [&] { return stopped_ || (slot.ticket == ticket && slot.phase == Phase::kFree); });
  return stopped_ ? nullptr : memory_of(ticket);
}

void SlotRing::publish(std::uint64_t ticket, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    state(ticket).phase = Phase::kReady;
    state(ticket).error = std::move(error);
  }
  filled_.notify_all();
}

std::byte* SlotRing::wait_ready(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  State& slot = state(ticket);
  if (slot.ticket != ticket) {
    throw core::Error("loader: all " + std::to_string(slots()) +
                      " slots are held; release a batch before asking for the next");
  }
  filled_.wait(lock, [&] { return slot.phase == Phase::kReady; });
  if (slot.error) std::rethrow_exception(slot.error);
  slot.phase = Phase::kHeld;
  return memory_of(ticket);
}

void SlotRing::release(std::uint64_t ticket) noexcept {
  {
    const std::lock_guard lock(mutex_);
    State& slot = state(ticket);
    slot.ticket += states_.size();
    slot.phase = Phase::kFree;
  }
  freed_.notify_all();
}

void SlotRing::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  freed_.notify_all();
}

}  // namespace sidestream::data
