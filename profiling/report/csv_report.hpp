// Every table as a CSV file in one folder (tables.hpp has the list), and every event.
#pragma once

#include <filesystem>
#include <vector>

#include "profiling/report/tables.hpp"

namespace sidestream::report {

// Every file that is written into the folder.
std::vector<std::filesystem::path> csv_files_in(const std::filesystem::path& folder);

// Makes the folder when it is not there. Throws core::Error.
void write_csv_folder(const Findings& findings, const std::filesystem::path& folder);

}  // namespace sidestream::report
