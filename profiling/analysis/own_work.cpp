#include "profiling/analysis/own_work.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "profiling/analysis/row_work.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

// Makes room or moves data, however long it takes: never what a call above it passed its work on
// to.
bool only_moves(std::string_view name) {
  constexpr std::array<std::string_view, 13> kNames = {
      "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::zeros", "aten::zeros_like",
      "aten::zero_", "aten::fill_",      "aten::resize_",       "aten::copy_", "aten::_to_copy",
      "aten::to",    "aten::clone",      "aten::contiguous"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The nearest operator around a call whose products are counted, or kNoParent.
std::size_t counted_above(const RankTimeline& timeline, const CallTree& tree, std::size_t call,
                          RowWork& work) {
  for (std::size_t at = tree.calls[call].parent; at != kNoParent; at = tree.calls[at].parent) {
    if (timeline.kind(tree.calls[at].row) != Kind::kOperator) return kNoParent;
    if (work.of(tree.calls[at].row).flops) return at;
  }
  return kNoParent;
}

// Of an operator whose products calls inside did.
OperatorWork without_products(const OperatorWork& work) {
  if (!work.beside_products) return {};
  const double bytes = work.beside_products->bytes;
  return {.element_flops = work.beside_products->flops,
          .bytes = bytes > 0 ? std::optional(bytes) : std::nullopt};
}

bool takes_most_of(const RankTimeline& timeline, const Call& call, const Call& above) {
  return call.self_ns > timeline.duration_ns(above.row) / 2;
}

}  // namespace

std::vector<OwnWork> own_work(const RankTimeline& timeline, const CallTree& tree) {
  RowWork work(timeline);
  std::vector<OwnWork> all(tree.calls.size());
  std::vector<double> done_inside(tree.calls.size(), 0);  // FLOPs
  for (std::size_t index = 0; index < tree.calls.size(); ++index) {
    const Call& call = tree.calls[index];
    OwnWork& own = all[index];
    own = {call.row, work.of(call.row), timeline.duration_ns(call.row)};
    if (timeline.kind(call.row) != Kind::kOperator) continue;
    if (!own.work.flops && only_moves(timeline.name(call.row))) continue;
    const std::size_t above = counted_above(timeline, tree, index, work);
    if (above == kNoParent) continue;
    const Call& outer = tree.calls[above];
    if (!own.work.flops && takes_most_of(timeline, call, outer))
      own = {outer.row, work.of(outer.row), own.time_ns};
    done_inside[above] += own.work.flops.value_or(0);
  }
  for (std::size_t index = 0; index < all.size(); ++index) {
    OwnWork& own = all[index];
    if (done_inside[index] <= 0 || !own.work.flops) continue;
    constexpr double kRounding = 1e-9;
    const double left = *own.work.flops - done_inside[index];
    const bool some = left > kRounding * *own.work.flops;
    // What some of its products moved is not known.
    own.work = some ? OperatorWork{.flops = left} : without_products(own.work);
    own.time_ns = tree.calls[index].self_ns;
  }
  return all;
}

}  // namespace sidestream::analysis
