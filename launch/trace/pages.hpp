// The page of one run.
#pragma once

#include <filesystem>
#include <vector>

#include "launch/trace/advised_report.hpp"

namespace sidestream::launch {

// Throws core::Error with the system's text when the file cannot be written.
void write_report_page(const std::filesystem::path& file,
                       const std::vector<std::filesystem::path>& inputs,
                       const analysis::Analysis& analysis, const AdvisedReport& advised);

}  // namespace sidestream::launch
