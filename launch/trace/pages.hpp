// The page of one run.
#pragma once

#include <filesystem>

#include "launch/trace/examined_run.hpp"

namespace sidestream::launch {

// Throws core::Error with the system's text when the file cannot be written.
void write_report_page(const std::filesystem::path& file, const std::string& label,
                       ExaminedRun& run, const advice::NcuByKernel& counters = {});

}  // namespace sidestream::launch
