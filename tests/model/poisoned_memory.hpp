// LibTorch's memory of the processor, while it lives: full of NaN when it is given back, and not
// given out again, so that whoever still reads it is found, and whoever still writes it can be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <c10/core/CPUAllocator.h>

namespace sidestream::test {

class PoisonedMemory final : public c10::Allocator {
 public:
  PoisonedMemory() : previous_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this); }
  ~PoisonedMemory() override {
    c10::SetCPUAllocator(previous_);
    kept_->free_released();
  }
  PoisonedMemory(const PoisonedMemory&) = delete;
  PoisonedMemory& operator=(const PoisonedMemory&) = delete;

  // Was given out and not given back, or is none of this.
  bool has_owner(const void* memory) const {
    const std::lock_guard lock(kept_->mutex);
    const auto* begin = static_cast<const std::byte*>(memory);
    const auto next = kept_->blocks.upper_bound(begin);
    if (next == kept_->blocks.begin()) return true;
    const auto& [first, block] = *std::prev(next);
    return begin >= first + block.bytes || block.alive;
  }
  std::size_t bytes_alive() const {
    const std::lock_guard lock(kept_->mutex);
    return kept_->bytes_alive;
  }
  // Of bytes_alive(), since the last call.
  std::size_t take_peak() {
    const std::lock_guard lock(kept_->mutex);
    return std::exchange(kept_->peak_bytes, kept_->bytes_alive);
  }

  // --- c10::Allocator
  c10::DataPtr allocate(std::size_t bytes) override {
    const std::size_t whole = (bytes + kHeader) / kHeader * kHeader;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(kHeader, kHeader + whole));
    new (block) Owner(kept_);
    std::byte* memory = block + kHeader;
    const std::lock_guard lock(kept_->mutex);
    kept_->blocks[memory] = {.bytes = bytes, .alive = true};
    kept_->bytes_alive += bytes;
    kept_->peak_bytes = std::max(kept_->peak_bytes, kept_->bytes_alive);
    return {memory, memory, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }

 private:
  struct Block {
    std::size_t bytes = 0;
    bool alive = false;
  };
  struct Kept {
    ~Kept() { free_released(); }
    void free_released() {
      const std::lock_guard lock(mutex);
      for (void* block : released) std::free(block);
      released.clear();
    }

    std::mutex mutex;
    std::map<const std::byte*, Block> blocks;
    std::vector<void*> released;
    std::size_t bytes_alive = 0, peak_bytes = 0;
  };
  // In front of each block: tensors may outlive this.
  using Owner = std::shared_ptr<Kept>;
  static constexpr std::size_t kHeader = 64;
  static_assert(sizeof(Owner) <= kHeader);

  static void release(void* memory) {
    auto* begin = static_cast<std::byte*>(memory);
    auto* header = reinterpret_cast<Owner*>(begin - kHeader);
    const Owner kept = std::move(*header);
    std::destroy_at(header);
    const std::lock_guard lock(kept->mutex);
    Block& block = kept->blocks.at(begin);
    block.alive = false;
    std::memset(begin, 0xFF, block.bytes);
    kept->bytes_alive -= block.bytes;
    kept->released.push_back(begin - kHeader);
  }

  c10::Allocator* previous_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace sidestream::test
