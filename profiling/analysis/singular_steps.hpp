// Steps that are nobody's mean, told apart from the others before anything is added up.
//
// - eval, checkpoint: a rank evaluated or saved in it;
// - unfinished: the recording ended in it, and what follows it in the next file of its rank;
// - incomplete: the recorder had no room for all its ranges, on any rank;
// - outlier: at least 5 times as long as the median step, on any rank, where at most a tenth of the
//   steps are: a stall that happens once, and not what the run is like. Steps with other tags
//   are none: it is known why they are long. Below 10 steps nothing is said.
#pragma once

#include <vector>

#include "profiling/analysis/step_table.hpp"
#include "profiling/statistics/outliers.hpp"

namespace sidestream::analysis {

// Tags them on all ranks, and fills RankView::singular with those of the last three kinds.
void tag_singular_steps(std::vector<RankView>& ranks);

// By step.
std::vector<statistics::Outlier> find_outliers(const std::vector<RankView>& ranks);

}  // namespace sidestream::analysis
