// Steps that are nobody's mean, told apart from the others before anything is added up.
//
// - unfinished: the recording ended in it, and what follows it in the next file of its rank;
// - incomplete: the recorder had no room for all its ranges, on any rank;
// - outlier: at least 5 times as long as the median step, on any rank, where at most a tenth of the
//   steps are: a stall that happens once, and not what the run is like. Steps with other tags
//   are none: it is known why they are long. Below 10 steps nothing is said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/step_table.hpp"

namespace sidestream::analysis {

// Tags them on all ranks, and fills RankView::singular.
void tag_singular_steps(std::vector<RankView>& ranks);

// A step that was an outlier, and the rank that the others waited for in it.
struct Outlier {
  std::int64_t step = 0;
  std::int64_t length_ns = 0;  // of the longest of all ranks
  double medians = 0;          // the same over the median step
  int rank = 0;
  std::string phase = {};  // in which that rank was longest; empty: in none
};

// By step.
std::vector<Outlier> find_outliers(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
