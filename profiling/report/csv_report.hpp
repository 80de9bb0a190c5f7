// Every table as a CSV file in one folder: steps, collectives, operations, operators,
// operator_tree, modules, memory, distributed, overlap_tax, events.
#pragma once

#include <filesystem>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::report {

// Makes the folder when it is not there. Throws core::Error.
void write_csv_folder(const analysis::Analysis& analysis, const std::filesystem::path& folder);

}  // namespace sidestream::report
