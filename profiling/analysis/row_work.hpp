// The work of operators in a timeline. Calls with the same shapes are looked at once.
#pragma once

#include <functional>
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

// What an operator had to do, in the row of one of its kernels.
struct KernelWork {
  std::size_t row = 0;
  std::size_t operator_row = 0;
  OperatorWork work = {};
};

// An operator that launches several kernels did its work in the longest of them. Nothing comes of a
// trace without shapes.
void visit_kernel_work(const trace::RankTimeline& timeline, const CallTree& tree,
                       const std::function<void(const KernelWork& one)>& use);

}  // namespace sidestream::analysis
