// A column of numbers of which nearly all need half the bits of their type: durations in
// nanoseconds and correlation ids 32 of 64, numbers of names and tracks 16 of 32. The few others
// are kept beside it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "profiling/trace/column.hpp"

namespace sidestream::trace {

template <typename Value>
class NarrowColumn {
  static_assert(std::is_same_v<Value, std::uint64_t> || std::is_same_v<Value, std::uint32_t>);
  using Narrow =
      std::conditional_t<std::is_same_v<Value, std::uint64_t>, std::uint32_t, std::uint16_t>;

 public:
  void push_back(Value value) {
    const bool narrow = value < kWide;
    if (!narrow) wide_.emplace_back(rows_.size(), value);
    rows_.push_back(narrow ? static_cast<Narrow>(value) : kWide);
  }

  Value operator[](std::size_t row) const {
    const Narrow value = rows_[row];
    return value != kWide ? value : wide_at(row);
  }
  std::size_t size() const noexcept { return rows_.size(); }

 private:
  static constexpr Narrow kWide = std::numeric_limits<Narrow>::max();

  using Wide = std::pair<std::size_t, Value>;  // row, value
  Value wide_at(std::size_t row) const {
    return std::lower_bound(wide_.begin(), wide_.end(), row,
                            [](const Wide& one, std::size_t wanted) { return one.first < wanted; })
        ->second;
  }

  Column<Narrow> rows_;
  std::vector<Wide> wide_;  // in the order of their rows
};

}  // namespace sidestream::trace
