// A table as JSON: what report.json and a page have of it.
#pragma once

#include <nlohmann/json.hpp>

#include "profiling/report/table.hpp"

namespace sidestream::report {

// The first 1000 rows: a long run has more than anybody scrolls through. --csv writes them all.
nlohmann::ordered_json json_rows(const Table& table);

}  // namespace sidestream::report
