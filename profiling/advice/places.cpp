#include "profiling/advice/places.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "profiling/advice/operation_kind.hpp"
#include "profiling/advice/optimizer_ranges.hpp"
#include "profiling/analysis/collective_list.hpp"
#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/host_activity.hpp"
#include "profiling/analysis/idle_causes.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::advice {
namespace {

using analysis::NameClass;
using trace::Kind;
using trace::RankTimeline;

std::optional<PlaceKind> kind_of_range(std::string_view name, NameClass what) {
  if (what == NameClass::kInputRange) return PlaceKind::kInput;
  if (is_optimizer_range(name)) return PlaceKind::kOptimizer;
  if (name == ranges::name_of(ranges::Phase::kCheckpoint)) return PlaceKind::kCheckpoint;
  return std::nullopt;
}

// Of the names of one timeline, looked at once: a trace has few names and many events.
class PlacesOfNames {
 public:
  explicit PlacesOfNames(const RankTimeline& timeline)
      : timeline_(timeline), classes_(timeline.names), product_(timeline.names.size()) {
    for (trace::NameId id = 0; id < product_.size(); ++id)
      product_[id] = is_product(std::string(timeline.names[id]));
  }

  void offer(std::size_t row, RankPlaces& places) const {
    const trace::NameId id = timeline_.name_id(row);
    switch (timeline_.kind(row)) {
      case Kind::kHostRange:
        if (const auto kind = kind_of_range(timeline_.names[id], classes_[id]))
          places.offer(*kind, row);
        if (classes_[id] == NameClass::kCollectiveRange) offer_collective(row, places);
        break;
      case Kind::kKernel:
        if (classes_[id] == NameClass::kCollectiveKernel)
          offer_collective(row, places);
        else if (product_[id])
          places.offer(PlaceKind::kProduct, row);
        break;
      case Kind::kOperator:
        if (product_[id]) places.offer(PlaceKind::kProduct, row);
        if (timeline_.names[id] == "aten::item") places.offer(PlaceKind::kItem, row);
        if (is_fusible(timeline_.names[id])) places.offer(PlaceKind::kFusible, row);
        [[fallthrough]];
      case Kind::kRuntime:
        if (classes_[id] == NameClass::kSyncCall) places.offer(PlaceKind::kSync, row);
        break;
      default:
        break;
    }
  }

  NameClass class_at(std::size_t row) const { return classes_[timeline_.name_id(row)]; }

 private:
  void offer_collective(std::size_t row, RankPlaces& places) const {
    places.offer(PlaceKind::kCollective, row);
    const auto bytes = static_cast<double>(analysis::collective_facts(timeline_, row).bytes);
    if (bytes > 0 && bytes < kSmallCollectiveBytes) places.offer(PlaceKind::kSmallCollective, row);
  }

  const RankTimeline& timeline_;
  analysis::NameClasses classes_;
  std::vector<bool> product_;
};

// Where the device has nothing to do in a step while the host is not reading, waiting or in a
// collective, nor on the way to its next launch after a wait.
void offer_launch_gap(const analysis::RankView& rank, const PlacesOfNames& names,
                      RankPlaces& places) {
  if (rank.activity.where != analysis::Where::kDevice) return;
  const RankTimeline& timeline = *rank.timeline;
  std::vector<analysis::Interval> others;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (kind != Kind::kHostRange && kind != Kind::kRuntime && kind != Kind::kOperator) continue;
    const NameClass what = names.class_at(row);
    if (what == NameClass::kInputRange || analysis::is_communication_range(what) ||
        what == NameClass::kSyncCall)
      others.push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  const analysis::IntervalSet windows = rank.counted_windows(), busy = rank.activity.busy();
  const analysis::IntervalSet known =
      analysis::IntervalSet(std::move(others)) |
      analysis::after_syncs(analysis::host_activity(timeline).sync, rank.activity, busy);
  for (const analysis::Interval window : windows.intervals()) {
    // A part begins where the device begins to work: no gap is cut in two.
    for (const analysis::Interval part : busy.parts_of(window, analysis::kIntervalsAtOnce)) {
      const analysis::IntervalSet gaps =
          analysis::IntervalSet({part}) - busy.within(part) - known.within(part);
      for (const analysis::Interval& gap : gaps.intervals())
        places.offer(PlaceKind::kLaunchGap, gap);
    }
  }
}

// The longest range of the phase that the slow rank is slow in; its collectives where no phase says
// it.
void offer_straggler(const analysis::Analysis& all, const RankTimeline& timeline,
                     RankPlaces& places) {
  if (!all.straggler || all.straggler->rank != timeline.info.rank) return;
  bool found = false;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != Kind::kHostRange || timeline.name(row) != all.straggler->phase)
      continue;
    places.offer(PlaceKind::kStraggler, row);
    found = true;
  }
  for (std::size_t row = 0; !found && row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kKernel &&
        analysis::class_of(timeline.name(row)) == NameClass::kCollectiveKernel)
      places.offer(PlaceKind::kStraggler, row);
  }
}

std::int64_t first_step_of(const analysis::Analysis& all, const report::CommonTime& time) {
  std::optional<std::int64_t> first;
  for (const analysis::RankView& rank : all.ranks) {
    for (const analysis::StepRow& step : rank.steps) {
      const std::int64_t start = time(*rank.timeline, step.window.start_ns);
      first = std::min(first.value_or(start), start);
    }
  }
  return first.value_or(0);
}

void keep_larger(const Place& one, Place& kept) {
  if (one.weight > kept.weight) kept = one;
}

}  // namespace

void RankPlaces::offer(PlaceKind kind, std::size_t row, double weight) {
  if (weight <= best(kind).weight) return;
  const auto detail = timeline_->device(row);
  best(kind) = {.time = {timeline_->start_ns(row), timeline_->end_ns(row)},
                .stream = detail ? std::optional<std::int64_t>(detail->stream) : std::nullopt,
                .weight = weight};
}

void RankPlaces::offer(PlaceKind kind, analysis::Interval time) {
  const auto weight = static_cast<double>(time.length_ns());
  if (weight > best(kind).weight) best(kind) = {.time = time, .weight = weight};
}

void RankPlaces::add_to(const report::CommonTime& time, Places& places) const {
  Places own;
  const int rank = timeline_->info.rank;
  for (std::size_t kind = 0; kind < best_.size(); ++kind) {
    const Best& one = best_[kind];
    if (one.weight <= 0) continue;
    const std::int64_t start = time(*timeline_, one.time.start_ns);
    const Place place{.rank = rank,
                      .stream = one.stream,
                      .start_ns = start,
                      .end_ns = start + one.time.length_ns(),
                      .weight = one.weight};
    own.of_all[static_cast<PlaceKind>(kind)] = place;
    own.of_rank[rank][static_cast<PlaceKind>(kind)] = place;
  }
  merge(own, places);
}

void merge(const Places& more, Places& places) {
  for (const auto& [kind, place] : more.of_all) keep_larger(place, places.of_all[kind]);
  for (const auto& [rank, kinds] : more.of_rank) {
    for (const auto& [kind, place] : kinds) keep_larger(place, places.of_rank[rank][kind]);
  }
}

Places longest_places(const analysis::Analysis& all) {
  Places places;
  const report::CommonTime time(all);
  places.first_step_ns = first_step_of(all, time);
  for (const analysis::RankView& rank : all.ranks) {
    const RankTimeline& timeline = *rank.timeline;
    const PlacesOfNames names(timeline);
    RankPlaces own(timeline);
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (rank.counts(row)) names.offer(row, own);
    }
    for (const analysis::StepRow& step : rank.steps) {
      if (rank.counts(step)) own.offer(PlaceKind::kStep, step.window);
    }
    offer_launch_gap(rank, names, own);
    offer_straggler(all, timeline, own);
    own.add_to(time, places);
  }
  return places;
}

}  // namespace sidestream::advice
