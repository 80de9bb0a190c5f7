// The raw events: all of them as CSV, the longest as a table.
#include <algorithm>

#include "profiling/ranges/phases.hpp"
#include "profiling/report/summary.hpp"
#include "profiling/report/tables.hpp"
#include "profiling/trace/byte_sink.hpp"

namespace sidestream::report {
namespace {

const std::vector<std::string> kHeader = {"rank",        "kind",    "name",   "start_ns",
                                          "duration_ns", "process", "thread", "correlation"};

Row event_row(const trace::RankTimeline& timeline, std::size_t row, const CommonTime& time) {
  const trace::Track& track = timeline.tracks()[timeline.track_of(row)];
  return {std::int64_t{timeline.info.rank},
          std::string(trace::name_of(timeline.kind(row))),
          std::string(timeline.name(row)),
          time(timeline, timeline.start_ns(row)),
          timeline.duration_ns(row),
          track.process,
          track.thread,
          std::to_string(timeline.correlation(row))};
}

}  // namespace

void write_event_list(const analysis::Analysis& all, const std::filesystem::path& file) {
  trace::ByteSink sink(file);
  const CommonTime time(all);
  sink.write(csv_of_row({kHeader.begin(), kHeader.end()}));
  for (const analysis::RankView& rank : all.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row)
      sink.write(csv_of_row(event_row(*rank.timeline, row, time)));
  }
  sink.finish();
}

Table events_table(const Findings& findings) {
  constexpr std::size_t kMost = 1000;
  const analysis::Analysis& all = findings.analysis;
  struct Place {
    const trace::RankTimeline* timeline;
    std::size_t row;
    std::int64_t duration_ns;
  };
  std::vector<Place> places;
  const auto longer = [](const Place& a, const Place& b) { return a.duration_ns > b.duration_ns; };
  for (const analysis::RankView& rank : all.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row) {
      if (rank.timeline->name(row).starts_with(ranges::kStepPrefix)) continue;
      const Place place{rank.timeline, row, rank.timeline->duration_ns(row)};
      if (places.size() == kMost && !longer(place, places.front())) continue;
      places.push_back(place);  // a heap with the shortest in front
      std::push_heap(places.begin(), places.end(), longer);
      if (places.size() <= kMost) continue;
      std::pop_heap(places.begin(), places.end(), longer);
      places.pop_back();
    }
  }
  std::sort_heap(places.begin(), places.end(), longer);
  const CommonTime time(all);
  Table table{.title = kEventsTable, .header = kHeader, .rows = {}};
  for (const Place& one : places) table.rows.push_back(event_row(*one.timeline, one.row, time));
  return table;
}

}  // namespace sidestream::report
