// The work of operators in a timeline. Calls with the same shapes are looked at once.
#pragma once

#include <map>
#include <tuple>

#include "profiling/analysis/call_tree.hpp"
#include "profiling/analysis/operator_work.hpp"
#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::analysis {

class RowWork {
 public:
  explicit RowWork(const trace::RankTimeline& timeline) : timeline_(timeline) {}

  // Nothing for rows that are no operators and for operators without shapes.
  OperatorWork of(std::size_t row);

 private:
  using Key = std::tuple<trace::NameId, trace::NameId, trace::NameId, trace::NameId>;

  const trace::RankTimeline& timeline_;
  std::map<Key, OperatorWork> known_;
};

bool has_shapes(const trace::RankTimeline& timeline);

// Row of a kernel -> what its operator had to do. An operator that launches several kernels did it
// in the longest of them. Empty for a trace without shapes.
std::map<std::size_t, OperatorWork> kernel_work(const trace::RankTimeline& timeline,
                                                const CallTree& tree);

}  // namespace sidestream::analysis
