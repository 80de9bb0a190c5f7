#include "profiling/analysis/details.hpp"

namespace sidestream::analysis {

Details look_closer(const Analysis& all) {
  std::vector<CallTree> trees;
  for (const RankView& rank : all.ranks) trees.push_back(call_tree(*rank.timeline));
  return {.operators = operator_table(all.ranks, trees),
          .tree = operator_tree(all.ranks, trees),
          .kernels = kernel_table(all.ranks, trees),
          .modules = module_table(all.ranks, trees),
          .memory = memory_use(all.ranks),
          .counters = counter_table(all.ranks)};
}

}  // namespace sidestream::analysis
