// The longest operations against their roofs, for a terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "launch/trace/examined_run.hpp"
#include "profiling/advice/roofline.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::launch {

std::vector<advice::RooflinePoint> longest_operations(const ExaminedRun& run,
                                                      const advice::NcuByKernel& counters,
                                                      std::size_t most);

report::Table roofline_table(const std::vector<advice::RooflinePoint>& points);

// A line each in the order of the table: the cause, and counters where there are some.
std::string causes_text(const std::vector<advice::RooflinePoint>& points, std::size_t width);

// What the machine reaches, as far as it was measured.
std::string roofs_text(const std::optional<advice::Ceilings>& ceilings, std::size_t width);

// A line each for a page that has no such table: name, place under the roof, cause.
std::string short_causes_text(const std::vector<advice::RooflinePoint>& points, std::size_t width);

}  // namespace sidestream::launch
