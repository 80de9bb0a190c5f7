// The parts of report.json that a page is drawn from: tables, and what happened when in one step.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/report/tables.hpp"

namespace sidestream::report {

// {"operators": {"columns": [...], "rows": [[...]], "rows_in_all": N}, ...}: every table of
// tables.hpp and the longest events, each cut to its first 1000 rows. What is not known is null.
nlohmann::ordered_json tables_json(const Findings& findings);

// The middle step of every rank: compute, communication, copies and phases as [start, end] pairs in
// nanoseconds from the start of the step, at most 500 a lane (the smallest gaps are closed).
nlohmann::ordered_json lanes_json(const analysis::Analysis& analysis);

}  // namespace sidestream::report
