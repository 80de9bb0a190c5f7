// A column of 64-bit numbers of which nearly all need 32: durations in nanoseconds, correlation
// ids. A row takes four bytes; the few others are kept beside it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "profiling/trace/column.hpp"

namespace sidestream::trace {

class NarrowColumn {
 public:
  void push_back(std::uint64_t value) {
    const bool narrow = value < kWide;
    if (!narrow) wide_.emplace_back(rows_.size(), value);
    rows_.push_back(narrow ? static_cast<std::uint32_t>(value) : kWide);
  }

  std::uint64_t operator[](std::size_t row) const {
    const std::uint32_t value = rows_[row];
    return value != kWide ? value : wide_at(row);
  }
  std::size_t size() const noexcept { return rows_.size(); }

 private:
  static constexpr std::uint32_t kWide = 0xFFFFFFFFu;

  using Wide = std::pair<std::size_t, std::uint64_t>;  // row, value
  std::uint64_t wide_at(std::size_t row) const {
    return std::lower_bound(wide_.begin(), wide_.end(), row,
                            [](const Wide& one, std::size_t wanted) { return one.first < wanted; })
        ->second;
  }

  Column<std::uint32_t> rows_;
  std::vector<Wide> wide_;  // in the order of their rows
};

}  // namespace sidestream::trace
