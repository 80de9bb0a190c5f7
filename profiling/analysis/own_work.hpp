// What each call of a host rank worked on itself: without what calls inside it did.
//
// Fused operators count the products that they are made of, and call aten::mm for them: the FLOPs
// are then of aten::mm, where the time is. Of the operator remains what it does besides, such as
// GELU (fused_work.hpp). aten::convolution passes its work on to
// aten::mkldnn_convolution, whose name is no counter's: what takes most of the time of a call that
// computes did its work. So a sum over all calls counts nothing twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiling/analysis/call_tree.hpp"
#include "profiling/analysis/operator_work.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

struct OwnWork {
  std::size_t row = 0;  // of the operator whose shapes the work is known from
  OperatorWork work = {};
  // In which it was done: the whole call, or what calls inside left of it.
  std::int64_t time_ns = 0;
};

// One for each call of the tree; nothing is known of calls that are no operators.
std::vector<OwnWork> own_work(const trace::RankTimeline& timeline, const CallTree& tree);

}  // namespace sidestream::analysis
