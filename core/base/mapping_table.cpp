#include "core/base/mapping_table.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace sidestream::core {
namespace {

struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};  // 0: the rest means nothing
  std::size_t bytes = 0;
  std::array<char, 512> file{};
};

// Signal handlers have no argument for a context: this is why it is static.
std::array<Slot, 1024> slots;

void set_name(Slot& slot, const std::filesystem::path& file) {
  const std::string& name = file.native();
  const std::size_t length = std::min(name.size(), slot.file.size() - 1);
  const auto end =
      std::copy_n(name.end() - static_cast<std::ptrdiff_t>(length), length, slot.file.begin());
  *end = '\0';
}

}  // namespace

void note_mapping(const std::byte* begin, std::size_t bytes,
                  const std::filesystem::path& file) noexcept {
  for (Slot& slot : slots) {
    if (slot.taken.exchange(true)) continue;
    slot.bytes = bytes;
    set_name(slot, file);
    slot.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
    return;
  }
}

void forget_mapping(const std::byte* begin) noexcept {
  for (Slot& slot : slots) {
    if (slot.begin.load(std::memory_order_acquire) != reinterpret_cast<std::uintptr_t>(begin))
      continue;
    slot.begin.store(0, std::memory_order_release);
    slot.taken.store(false, std::memory_order_release);
    return;
  }
}

MappedPlace find_mapping(const void* address) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  MappedPlace place;
  for (const Slot& slot : slots) {
    const std::uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin == 0 || wanted < begin || wanted - begin >= slot.bytes) continue;
    for (std::size_t i = 0; i < place.file.size(); ++i) place.file[i] = slot.file[i];
    place.offset_bytes = wanted - begin;
    break;
  }
  return place;
}

}  // namespace sidestream::core
