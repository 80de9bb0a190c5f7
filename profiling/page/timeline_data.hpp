// The events that the page draws: lanes of every rank on the common clock.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/shown_steps.hpp"

namespace sidestream::page {

inline constexpr std::size_t kMostEvents = 120'000;

// {"start_ns", "length_ns", "names": [..], "left_out", "shortest_ns", "ranks": [{"rank", "windows":
// [[step, start, end]..], "lanes": [{"kind", "events": [start, duration, name, ...]}], "samples":
// [..]}]} Times are nanoseconds from the start of the first step, as those of tables and advice;
// without steps from the first event. The first that is drawn is at start_ns. Above `limit` events
// the shortest are left out, counted in left_out. Windows are those of the shown steps.
nlohmann::ordered_json timeline_data(const analysis::Analysis& all, std::size_t limit = kMostEvents,
                                     const report::ShownSteps& shown = {});

}  // namespace sidestream::page
