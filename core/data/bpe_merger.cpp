#include "core/data/bpe_merger.hpp"

#include <algorithm>
#include <bit>

#include "core/base/random_bits.hpp"

namespace sidestream::data {
namespace {

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return (std::uint64_t{left} << 32) | right;
}

}  // namespace

MergeTable::MergeTable(const std::vector<BpeMerge>& merges)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2))) {
  std::uint32_t rank = 0;
  for (const BpeMerge& merge : merges) {
    const std::uint64_t pair = pair_of(merge.left, merge.right);
    slots_[slot_of(pair)] = {pair, rank++, merge.result};
  }
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  std::size_t slot = core::mix_bits(pair) & (slots_.size() - 1);
  while (slots_[slot].rank != kNoRank && slots_[slot].pair != pair)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

MergeTable::Entry MergeTable::find(std::uint32_t left, std::uint32_t right) const {
  return slots_[slot_of(pair_of(left, right))];
}

void BpeMerger::merge(std::vector<std::uint32_t>& symbols) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kLongWord) {
    merge_by_scanning(symbols);
  } else {
    merge_by_heap(symbols);
  }
}

void BpeMerger::merge_by_scanning(std::vector<std::uint32_t>& symbols) {
  pairs_.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    pairs_.push_back(table_.find(symbols[i], symbols[i + 1]));
  const auto lower = [](const MergeTable::Entry& a, const MergeTable::Entry& b) {
    return a.rank < b.rank;
  };
  while (!pairs_.empty()) {
    const auto best = std::min_element(pairs_.begin(), pairs_.end(), lower);
    if (best->rank == MergeTable::kNoRank) return;
    const auto i = static_cast<std::size_t>(best - pairs_.begin());
    symbols[i] = best->result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    pairs_.erase(best);
    if (i > 0) pairs_[i - 1] = table_.find(symbols[i - 1], symbols[i]);
    if (i + 1 < symbols.size()) pairs_[i] = table_.find(symbols[i], symbols[i + 1]);
  }
}

void BpeMerger::push(std::int32_t position) {
  const Node& left = nodes_[static_cast<std::size_t>(position)];
  if (left.next < 0) return;
  const std::uint32_t right = nodes_[static_cast<std::size_t>(left.next)].symbol;
  const MergeTable::Entry found = table_.find(left.symbol, right);
  if (found.rank == MergeTable::kNoRank) return;
  heap_.push_back({found.rank, position, left.symbol, right, found.result});
  std::push_heap(heap_.begin(), heap_.end(), [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  });
}

void BpeMerger::apply(const Candidate& candidate) {
  Node& left = nodes_[static_cast<std::size_t>(candidate.position)];
  // A candidate is stale when either side has merged with something else since.
  if (left.symbol != candidate.left || left.next < 0) return;
  Node& right = nodes_[static_cast<std::size_t>(left.next)];
  if (right.symbol != candidate.right) return;
  left.symbol = candidate.result;
  right.symbol = MergeTable::kNoRank;  // no id: nothing matches it any more
  left.next = right.next;
  if (left.next >= 0) nodes_[static_cast<std::size_t>(left.next)].previous = candidate.position;
  if (left.previous >= 0) push(left.previous);
  push(candidate.position);
}

void BpeMerger::merge_by_heap(std::vector<std::uint32_t>& symbols) {
  nodes_.clear();
  heap_.clear();
  const auto count = static_cast<std::int32_t>(symbols.size());
  for (std::int32_t i = 0; i < count; ++i) {
    nodes_.push_back({symbols[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  for (std::int32_t i = 0; i < count; ++i) push(i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), [](const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    });
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    apply(candidate);
  }
  symbols.clear();
  for (std::int32_t i = 0; i >= 0; i = nodes_[static_cast<std::size_t>(i)].next) {
    symbols.push_back(nodes_[static_cast<std::size_t>(i)].symbol);
  }
}

}  // namespace sidestream::data
