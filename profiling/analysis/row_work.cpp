#include "profiling/analysis/row_work.hpp"

#include <vector>

#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/own_work.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

// The call that the kernel belongs to: the nearest one around its launch that computes, else the
// nearest operator.
std::size_t worker_of(const RankTimeline& timeline, const CallTree& tree, std::size_t caller,
                      RowWork& work) {
  std::size_t nearest = kNoParent;
  for (std::size_t at = caller; at != kNoParent; at = tree.calls[at].parent) {
    if (timeline.kind(tree.calls[at].row) != Kind::kOperator) continue;
    if (work.of(tree.calls[at].row).flops) return at;
    if (nearest == kNoParent) nearest = at;
  }
  return nearest;
}

}  // namespace

OperatorWork RowWork::of(std::size_t row) {
  const auto detail = timeline_.host(row);
  if (timeline_.kind(row) != Kind::kOperator || !detail) return {};
  if (detail->shapes == trace::kNoName) return {};
  const Key key{timeline_.name_id(row), detail->shapes, detail->types, detail->values};
  const auto [place, is_new] = known_.try_emplace(key);
  if (is_new) {
    place->second = work_of({.name = timeline_.name(row),
                             .shapes = timeline_.names[detail->shapes],
                             .types = timeline_.names[detail->types],
                             .values = timeline_.names[detail->values]});
  }
  return place->second;
}

bool has_shapes(const RankTimeline& timeline) {
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const auto detail = timeline.host(row);
    if (detail && detail->shapes != trace::kNoName) return true;
  }
  return false;
}

void visit_kernel_work(const RankTimeline& timeline, const CallTree& tree,
                       const std::function<void(const KernelWork& one)>& use) {
  RowWork work(timeline);
  const NameClasses classes(timeline.names);
  std::vector<std::size_t> longest(tree.calls.size(), kNoParent);  // row of a call's longest kernel
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != Kind::kKernel ||
        classes[timeline.name_id(row)] == NameClass::kCollectiveKernel)
      continue;
    const auto launch = tree.launched_by.find(timeline.correlation(row));
    if (launch == tree.launched_by.end()) continue;
    const std::size_t worker = worker_of(timeline, tree, launch->second, work);
    if (worker == kNoParent) continue;
    std::size_t& so_far = longest[worker];
    if (so_far == kNoParent || timeline.duration_ns(row) > timeline.duration_ns(so_far))
      so_far = row;
  }
  // A fused operator may call products that launch kernels themselves: theirs is the work then.
  const std::vector<OwnWork> own = own_work(timeline, tree);
  for (std::size_t call = 0; call < longest.size(); ++call) {
    if (longest[call] == kNoParent) continue;
    const std::size_t operator_row = tree.calls[call].row;
    const OperatorWork whole = work.of(operator_row);
    use({longest[call], operator_row, whole.flops ? own[call].work : whole});
  }
}

}  // namespace sidestream::analysis
