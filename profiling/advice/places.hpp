// Where in the timeline a finding can be seen best: the longest event of what it is about.
#pragma once

#include <array>
#include <map>

#include "profiling/advice/facts.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::advice {

// The longest events of one rank, a kind each.
class RankPlaces {
 public:
  explicit RankPlaces(const trace::RankTimeline& timeline) : timeline_(&timeline) {}

  void offer(PlaceKind kind, std::size_t row) {
    offer(kind, row, static_cast<double>(timeline_->duration_ns(row)));
  }
  // By something else than its time.
  void offer(PlaceKind kind, std::size_t row, double weight);
  void offer(PlaceKind kind, analysis::Interval time);

  // Times as in report.json: on the clock that all ranks share, from the first event on. Of all
  // ranks the longest is kept, and of each its own.
  void add_to(const report::CommonTime& time, Places& places) const;

 private:
  struct Best {
    analysis::Interval time = {};
    std::optional<std::int64_t> stream = {};
    double weight = 0;
  };
  Best& best(PlaceKind kind) { return best_[static_cast<std::size_t>(kind)]; }

  const trace::RankTimeline* timeline_;
  std::array<Best, kPlaceKinds> best_ = {};
};

// Of what a name or the steps tell; event_facts.hpp adds what takes a closer look. Kinds without an
// event are not there.
Places longest_places(const analysis::Analysis& all);

// Of both the larger one, for all ranks and for each.
void merge(const Places& more, Places& places);

}  // namespace sidestream::advice
