// Which steps a page shows one by one: it cannot hold all of a long run of many ranks. Means are of
// all of them, and report.json has each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::report {

class ShownSteps {
 public:
  static constexpr std::size_t kMostRowsOfAPage = 40'000;  // some 15 MB

  // All.
  ShownSteps() = default;
  // A row is a step of a rank. All while there are at most `most_rows`; else whole steps, with all
  // of their ranks, as many as have room: the first one in any case, those with tags, the longest,
  // and those in which the own time of the ranks differs most.
  ShownSteps(const analysis::Analysis& all, std::size_t most_rows);

  bool contain(const std::optional<std::int64_t>& step) const {
    return left_out_rows_ == 0 || kept_.contains(step);
  }
  std::int64_t left_out_rows() const noexcept { return left_out_rows_; }

 private:
  std::set<std::optional<std::int64_t>> kept_;
  std::int64_t left_out_rows_ = 0;
};

}  // namespace sidestream::report
