// Steps that are nobody's mean: a process was stopped, a disk hung.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace sidestream::statistics {

struct Outlier {
  std::int64_t step = 0;
  std::int64_t length_ns = 0;  // of the longest of all ranks
  double medians = 0;          // the same over the median step
  int rank = 0;                // that waited least in it
  std::string phase = {};      // in which that rank was longest; empty: in none for half of it
};

bool is_outlier(std::int64_t length, std::int64_t median);

// Of lengths by number, those that are (at least five times the median). None of fewer than ten,
// and none where more than one in ten is: such a run is so.
std::set<std::int64_t> outliers_among(const std::map<std::int64_t, std::int64_t>& lengths);

}  // namespace sidestream::statistics
