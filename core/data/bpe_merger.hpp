// Merges the symbols of one word, always the pair of the lowest rank first and of equal ones the
// leftmost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/data/tokenizer_json.hpp"

namespace sidestream::data {

// (left, right) -> (rank, result), in one flat table.
class MergeTable {
 public:
  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

  struct Entry {
    std::uint64_t pair = ~std::uint64_t{0};
    std::uint32_t rank = kNoRank;
    std::uint32_t result = 0;
  };

  explicit MergeTable(const std::vector<BpeMerge>& merges);

  // An entry with kNoRank when the two do not merge.
  Entry find(std::uint32_t left, std::uint32_t right) const;

 private:
  std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Entry> slots_;  // a power of two, at most half full
};

// One thread's scratch memory. The table must outlive it.
class BpeMerger {
 public:
  explicit BpeMerger(const MergeTable& table) : table_(table) {}

  // Replaces the symbols by what is left of them after all merges. Short words are scanned again
  // and again, long ones use a heap: a run of a million spaces must not take quadratic time.
  void merge(std::vector<std::uint32_t>& symbols);

 private:
  static constexpr std::size_t kLongWord = 32;

  struct Node {
    std::uint32_t symbol;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t position;
    std::uint32_t left;
    std::uint32_t right;
    std::uint32_t result;
  };

  void merge_by_scanning(std::vector<std::uint32_t>& symbols);
  void merge_by_heap(std::vector<std::uint32_t>& symbols);
  void push(std::int32_t position);
  void apply(const Candidate& candidate);

  const MergeTable& table_;
  std::vector<MergeTable::Entry> pairs_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

}  // namespace sidestream::data
