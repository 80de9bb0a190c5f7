// The pages of one run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/trace/examined_run.hpp"

namespace sidestream::launch {

// Throws core::Error with the system's text when the file cannot be written.
void write_report_page(const std::filesystem::path& file, const std::string& label,
                       ExaminedRun& run, const advice::NcuByKernel& counters = {});

// The page of its roofline alone; `commands` read the counters that are not there yet.
void write_roofline_page(const std::filesystem::path& file, const std::string& label,
                         const ExaminedRun& run, const advice::NcuByKernel& counters,
                         std::vector<std::string> commands);

}  // namespace sidestream::launch
