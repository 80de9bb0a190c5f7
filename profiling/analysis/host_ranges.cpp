#include "profiling/analysis/host_ranges.hpp"

#include <utility>
#include <vector>

namespace sidestream::analysis {

IntervalSet host_ranges(const trace::RankTimeline& timeline, std::string_view name) {
  const trace::NameId id = timeline.names.find(name);
  std::vector<Interval> found;
  for (std::size_t row = 0; id != trace::kNoName && row < timeline.size(); ++row) {
    if (timeline.kind(row) == trace::Kind::kHostRange && timeline.name_id(row) == id)
      found.push_back({timeline.start_ns(row), timeline.end_ns(row)});
  }
  return IntervalSet(std::move(found));
}

}  // namespace sidestream::analysis
