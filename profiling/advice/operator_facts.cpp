#include "profiling/advice/operator_facts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "profiling/advice/event_facts.hpp"
#include "profiling/advice/layout_copies.hpp"
#include "profiling/advice/name_words.hpp"
#include "profiling/advice/optimizer_ranges.hpp"
#include "profiling/analysis/call_tree.hpp"
#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/step_rows.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::advice {
namespace {

using analysis::Call;
using analysis::CallTree;
using analysis::IntervalSet;
using analysis::NameClass;
using trace::Kind;
using trace::RankTimeline;

// torch.optim with fused=True, and apex's.
bool is_fused_update(std::string_view name) {
  return has(name, {"_fused_adam", "_fused_sgd", "multi_tensor_adam", "multi_tensor_sgd"});
}

// What weight decay is when it is not part of the update: a product with every parameter, or a sum
// of it with the gradient.
bool is_pass(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "aten::mul_",          "aten::add_",          "aten::add",          "aten::mul",
      "aten::_foreach_mul_", "aten::_foreach_add_", "aten::_foreach_add", "aten::_foreach_mul"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Calls of the runtime by thread: what the host spends inside of them is launching or waiting.
class RuntimeCalls {
 public:
  RuntimeCalls(const RankTimeline& timeline, const analysis::NameClasses& classes)
      : all_(timeline.tracks().size()), launches_(timeline.tracks().size()) {
    std::vector<std::vector<analysis::Interval>> all(all_.size()), launches(all_.size());
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.kind(row) != Kind::kRuntime) continue;
      const analysis::Interval call{timeline.start_ns(row), timeline.end_ns(row)};
      all[timeline.track_of(row)].push_back(call);
      if (classes[timeline.name_id(row)] == NameClass::kLaunchCall)
        launches[timeline.track_of(row)].push_back(call);
    }
    for (std::size_t track = 0; track < all.size(); ++track) {
      all_[track] = IntervalSet(std::move(all[track]));
      launches_[track] = IntervalSet(std::move(launches[track]));
    }
  }

  std::int64_t inside_ns(const RankTimeline& timeline, std::size_t row) const {
    return all_[timeline.track_of(row)].length_within_ns(
        {timeline.start_ns(row), timeline.end_ns(row)});
  }
  bool launches(const RankTimeline& timeline, std::size_t row) const {
    return launches_[timeline.track_of(row)].length_within_ns(
               {timeline.start_ns(row), timeline.end_ns(row)}) > 0;
  }

 private:
  std::vector<IntervalSet> all_, launches_;
};

// Sums over all ranks, and the longest heavy operator.
struct Sums {
  OptimizerFacts optimizer;
  std::optional<LayoutCopyFacts> layout_copies;
  std::optional<HeavyOperatorFacts> heavy;
  const RankTimeline* timeline = nullptr;
  std::size_t row = 0;
};

class RankOperators {
 public:
  RankOperators(const analysis::RankView& rank, const analysis::StepRows& rows)
      : rank_(rank),
        rows_(rows),
        timeline_(*rank.timeline),
        on_device_(rank.activity.where == analysis::Where::kDevice),
        classes_(timeline_.names),
        optimizer_(optimizer_ranges(timeline_)) {}

  void add_to(Sums& sums) const {
    if ((optimizer_.empty() && !on_device_) || !has_operators()) return;
    const CallTree tree = analysis::call_tree(timeline_);
    if (!sums.layout_copies) sums.layout_copies.emplace();
    add_layout_copies(rank_, rows_, tree, *sums.layout_copies);
    const RuntimeCalls runtime(timeline_, classes_);
    for (const Call& call : tree.calls) {
      if (timeline_.kind(call.row) != Kind::kOperator || !rows_.contain(call.row)) continue;
      if (!optimizer_.empty()) add_update(call, sums.optimizer);
      if (!on_device_) continue;
      if (!sums.heavy) sums.heavy.emplace();
      add_heavy(call, runtime, sums);
    }
  }

 private:
  bool has_operators() const {
    for (std::size_t row = 0; row < timeline_.size(); ++row) {
      if (timeline_.kind(row) == Kind::kOperator) return true;
    }
    return false;
  }

  bool starts_in(const IntervalSet& set, std::size_t row) const {
    return set.contains(timeline_.start_ns(row));
  }

  void add_update(const Call& call, OptimizerFacts& optimizer) const {
    if (!starts_in(optimizer_, call.row)) return;
    const std::string_view name = timeline_.name(call.row);
    if (is_fused_update(name)) optimizer.fused_update = true;
    if (is_pass(name))
      optimizer.passes_ns += static_cast<double>(on_device_ ? call.device_self_ns : call.self_ns);
  }

  void add_heavy(const Call& call, const RuntimeCalls& runtime, Sums& sums) const {
    if (call.device_self_ns > 0 || runtime.launches(timeline_, call.row) ||
        classes_[timeline_.name_id(call.row)] == NameClass::kSyncCall)
      return;
    const double own_ns =
        static_cast<double>(call.self_ns - runtime.inside_ns(timeline_, call.row));
    if (own_ns < kHeavyOperatorNs) return;
    sums.heavy->time_ns += own_ns;
    if (own_ns <= sums.heavy->longest_ns) return;
    sums.heavy->longest_ns = own_ns;
    sums.heavy->longest = timeline_.name(call.row);
    sums.timeline = &timeline_;
    sums.row = call.row;
  }

  const analysis::RankView& rank_;
  const analysis::StepRows& rows_;
  const RankTimeline& timeline_;
  bool on_device_ = false;
  analysis::NameClasses classes_;
  IntervalSet optimizer_;
};

std::optional<Place> place_of(const analysis::Analysis& all, const Sums& sums) {
  if (sums.timeline == nullptr) return std::nullopt;
  const std::int64_t start =
      report::CommonTime(all)(*sums.timeline, sums.timeline->start_ns(sums.row));
  return Place{.rank = sums.timeline->info.rank,
               .start_ns = start,
               .end_ns = start + sums.timeline->duration_ns(sums.row)};
}

}  // namespace

OperatorFacts gather_operators(const analysis::Analysis& all) {
  const auto profiled = static_cast<double>(std::max<std::int64_t>(1, all.operation_steps.steps));
  Sums sums;
  for (std::size_t file = 0; file < all.plain_ranks.size(); ++file) {
    const analysis::StepRows rows(all.plain_ranks[file], all.operation_steps.windows[file]);
    RankOperators(all.plain_ranks[file], rows).add_to(sums);
  }
  if (sums.heavy) sums.heavy->time_ns /= profiled;
  if (sums.layout_copies) {
    sums.layout_copies->copies_ns /= profiled;
    sums.layout_copies->before_products_ns /= profiled;
  }
  return {.fused_update = sums.optimizer.fused_update,
          .passes_ns = sums.optimizer.passes_ns / profiled,
          .layout_copies = sums.layout_copies,
          .heavy = sums.heavy,
          .heavy_place = place_of(all, sums)};
}

}  // namespace sidestream::advice
