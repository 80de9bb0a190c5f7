#include "profiling/trace/name_table.hpp"

#include <algorithm>
#include <cstring>

namespace sidestream::trace {
namespace {

// Each block is twice the one before, up to the largest: most tables hold a few texts.
constexpr std::size_t kFirstBlockBytes = std::size_t{1} << 9;
constexpr std::size_t kDoublings = 7;
constexpr std::size_t kFirstSlots = 64;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t word_at(const char* text, std::size_t bytes) {
  std::uint64_t word = 0;
  if (bytes != 0) std::memcpy(&word, text, bytes);  // an empty name may have no address
  return word;
}

}  // namespace

// Multiply and fold eight bytes at a time, after wyhash (Wang Yi, public domain).
std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t kA = 0xa0761d6478bd642fULL, kB = 0xe7037ed1a0b428dbULL;
  std::uint64_t hash = kA ^ text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) hash = mixed(hash ^ word_at(at, 8), kB);
  return mixed(hash ^ word_at(at, left), kA);
}

NameTable::NameTable() : slots_(kFirstSlots, kNoName) {
  entries_.push_back({std::string_view{""}, hash_of("")});
}

std::size_t NameTable::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot] != kNoName) {
    const Entry& entry = entries_[slots_[slot]];
    if (entry.hash == hash && entry.text == text) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

NameId NameTable::find(std::string_view text) const {
  return text.empty() ? kNoName : slots_[slot_of(text, hash_of(text))];
}

NameId NameTable::intern(std::string_view text) {
  if (text.empty()) return kNoName;
  const std::uint64_t hash = hash_of(text);
  std::size_t slot = slot_of(text, hash);
  if (slots_[slot] != kNoName) return slots_[slot];
  if (entries_.size() * 2 >= slots_.size()) {
    place_all(slots_.size() * 2);
    slot = slot_of(text, hash);
  }
  const auto id = static_cast<NameId>(entries_.size());
  entries_.push_back({keep(text), hash});
  slots_[slot] = id;
  return id;
}

std::string_view NameTable::keep(std::string_view text) {
  if (block_size_ - block_used_ < text.size()) {
    block_size_ = std::max(kFirstBlockBytes << std::min(blocks_.size(), kDoublings), text.size());
    block_used_ = 0;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_size_));
  }
  char* const place = blocks_.back().get() + block_used_;
  std::memcpy(place, text.data(), text.size());
  block_used_ += text.size();
  return {place, text.size()};
}

bool NameTable::rename(NameId id, std::string_view text) {
  if (id == kNoName || text.empty() || find(text) != kNoName) return false;
  entries_[id] = {keep(text), hash_of(text)};
  place_all(slots_.size());
  return true;
}

void NameTable::place_all(std::size_t slots) {
  slots_.assign(slots, kNoName);
  const std::size_t mask = slots_.size() - 1;
  for (NameId id = 1; id < entries_.size(); ++id) {
    std::size_t slot = entries_[id].hash & mask;
    while (slots_[slot] != kNoName) slot = (slot + 1) & mask;
    slots_[slot] = id;
  }
}

}  // namespace sidestream::trace
