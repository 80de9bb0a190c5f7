#include "profiling/advice/places.hpp"

#include <optional>
#include <vector>

#include "profiling/advice/operation_kind.hpp"
#include "profiling/analysis/event_class.hpp"
#include "profiling/ranges/phases.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::advice {
namespace {

using analysis::NameClass;
using trace::Kind;
using trace::RankTimeline;

std::optional<PlaceKind> kind_of_range(std::string_view name, NameClass what) {
  if (what == NameClass::kInputRange) return PlaceKind::kInput;
  if (what == NameClass::kCollectiveRange) return PlaceKind::kCollective;
  if (name == ranges::name_of(ranges::Phase::kOptimizer) || name.starts_with("Optimizer.step#"))
    return PlaceKind::kOptimizer;
  if (name == ranges::name_of(ranges::Phase::kCheckpoint)) return PlaceKind::kCheckpoint;
  return std::nullopt;
}

// Of the names of one timeline, looked at once: a trace has few names and many events.
class KindsOfNames {
 public:
  explicit KindsOfNames(const RankTimeline& timeline)
      : timeline_(timeline), classes_(timeline.names), product_(timeline.names.size()) {
    for (trace::NameId id = 0; id < product_.size(); ++id)
      product_[id] = is_product(std::string(timeline.names[id]));
  }

  std::optional<PlaceKind> of(std::size_t row) const {
    const trace::NameId id = timeline_.name_id(row);
    switch (timeline_.kind(row)) {
      case Kind::kHostRange:
        return kind_of_range(timeline_.names[id], classes_[id]);
      case Kind::kMemcpy:
        return PlaceKind::kCopy;
      case Kind::kKernel:
        if (classes_[id] == NameClass::kCollectiveKernel) return PlaceKind::kCollective;
        return product_[id] ? PlaceKind::kProduct : PlaceKind::kKernel;
      case Kind::kOperator:
        if (product_[id]) return PlaceKind::kProduct;
        return classes_[id] == NameClass::kSyncCall ? std::optional(PlaceKind::kSync)
                                                    : std::nullopt;
      case Kind::kRuntime:
        return classes_[id] == NameClass::kSyncCall ? std::optional(PlaceKind::kSync)
                                                    : std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  const RankTimeline& timeline_;
  analysis::NameClasses classes_;
  std::vector<bool> product_;
};

}  // namespace

std::map<PlaceKind, Place> longest_places(const analysis::Analysis& all) {
  std::map<PlaceKind, Place> places;
  const report::CommonTime time(all);
  for (const analysis::RankView& rank : all.ranks) {
    const RankTimeline& timeline = *rank.timeline;
    const KindsOfNames kinds(timeline);
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      const auto kind = kinds.of(row);
      if (!kind || !rank.counts(row)) continue;
      Place& place = places[*kind];
      if (timeline.duration_ns(row) <= place.end_ns - place.start_ns) continue;
      const std::int64_t start = time(timeline, timeline.start_ns(row));
      place = {timeline.info.rank, {}, start, start + timeline.duration_ns(row)};
      if (const auto detail = timeline.device(row)) place.stream = detail->stream;
    }
  }
  return places;
}

}  // namespace sidestream::advice
