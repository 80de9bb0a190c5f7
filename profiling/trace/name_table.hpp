// Every text of a trace once: names, shapes and stacks
// repeat thousands of times, rows hold a number.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace sidestream::trace {

using NameId = std::uint32_t;
inline constexpr NameId kNoName = 0;  // the empty text

class NameTable {
 public:
  NameTable();

  NameId intern(std::string_view text);
  // kNoName when it is not there, as for the empty text.
  NameId find(std::string_view text) const;
  // Gives a name another text, unless that text is there already. False: it was.
  bool rename(NameId id, std::string_view text);
  std::string_view operator[](NameId id) const { return entries_[id].text; }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::string_view text;
    std::uint64_t hash;
  };

  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  std::string_view keep(std::string_view text);
  void place_all(std::size_t slots);

  std::vector<Entry> entries_;
  std::vector<NameId> slots_;  // open addressing; kNoName is free
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_used_ = 0;
  std::size_t block_size_ = 0;
};

// Fast and good enough for tables; not for anything that leaves the process.
std::uint64_t hash_of(std::string_view text);

}  // namespace sidestream::trace
