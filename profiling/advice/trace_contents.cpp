#include "profiling/advice/trace_contents.hpp"

#include <algorithm>

#include "profiling/analysis/event_class.hpp"
#include "profiling/analysis/verdict.hpp"

namespace sidestream::advice {
namespace {

using analysis::NameClass;
using analysis::Where;
using trace::Kind;

void add_events(const trace::RankTimeline& timeline, TraceContents& contents) {
  const analysis::NameClasses classes(timeline.names);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    contents.operators = contents.operators || kind == Kind::kOperator;
    contents.runtime_calls = contents.runtime_calls || kind == Kind::kRuntime;
    if (kind == Kind::kHostRange && classes[timeline.name_id(row)] == NameClass::kInputRange)
      contents.input_ranges = true;
    if (kind != Kind::kKernel || contents.occupancies) continue;
    const auto detail = timeline.device(row);
    contents.occupancies = detail && detail->occupancy_percent >= 0;
  }
}

bool any_rank(const analysis::Analysis& all, Where where) {
  return std::any_of(all.ranks.begin(), all.ranks.end(),
                     [&](const analysis::RankView& rank) { return rank.activity.where == where; });
}

}  // namespace

TraceContents trace_contents(const analysis::Analysis& all) {
  TraceContents contents{
      .every_rank = static_cast<int>(all.set->ranks().size()) >= all.set->world_size,
      .matched_collectives = !all.matches.matched.empty(),
      .without_device = any_rank(all, Where::kNothing) && !any_rank(all, Where::kDevice),
      .hidden_kernels = analysis::has_hidden_kernels(all.ranks)};
  for (const analysis::RankView& rank : all.ranks) add_events(*rank.timeline, contents);
  return contents;
}

}  // namespace sidestream::advice
