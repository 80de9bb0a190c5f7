// A ring of memory slots between threads that fill batches and one thread that uses them.
//
// Batches have tickets 0, 1, 2, ...; ticket k always lives in slot k mod slots, so that no order of
// threads can change which memory a batch gets. The ring owns the memory; a slot is written only
// between wait_free and publish, and read only between wait_ready and release.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace sidestream::data {

// Replaces the heap, for pinned memory for example. The memory must be aligned to 64 bytes.
struct SlotAllocator {
  std::function<void*(std::size_t bytes)> allocate;
  std::function<void(void* memory, std::size_t bytes)> release;

  static SlotAllocator heap();
};

class SlotRing {
 public:
  static constexpr std::size_t kAlignmentBytes = 64;

  // Throws MemoryError when the allocator returns null, Error when what it returns is not aligned.
  SlotRing(std::size_t slots, std::size_t slot_bytes, SlotAllocator allocator);
  SlotRing(const SlotRing&) = delete;
  SlotRing& operator=(const SlotRing&) = delete;
  ~SlotRing();

  std::size_t slots() const noexcept { return states_.size(); }

  // Whether wait_free would return at once.
  bool may_fill(std::uint64_t ticket);
  // Blocks until the ticket's slot may be filled. Null after stop.
  std::byte* wait_free(std::uint64_t ticket);
  // The slot is filled, or filling it failed with `error`.
  void publish(std::uint64_t ticket, std::exception_ptr error = nullptr);

  // Blocks until the ticket's slot is filled, and rethrows what filling it threw. Throws Error when
  // the slot still holds an older batch that was not released: waiting would be for ever.
  std::byte* wait_ready(std::uint64_t ticket);
  void release(std::uint64_t ticket) noexcept;

  void stop() noexcept;

 private:
  enum class Phase : std::uint8_t { kFree, kReady, kHeld };
  struct State {
    std::uint64_t ticket = 0;
    Phase phase = Phase::kFree;
    std::exception_ptr error;
  };

  State& state(std::uint64_t ticket) { return states_[ticket % states_.size()]; }
  std::byte* memory_of(std::uint64_t ticket) {
    return memory_ + (ticket % states_.size()) * slot_bytes_;
  }

  std::size_t slot_bytes_;
  SlotAllocator allocator_;
  std::byte* memory_ = nullptr;
  std::vector<State> states_;
  bool stopped_ = false;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::condition_variable filled_;
};

}  // namespace sidestream::data
