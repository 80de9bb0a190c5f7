// Commands that show one run say so when they are given several.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "profiling/trace/trace_files.hpp"

namespace sidestream::launch {

// The traces that these files are and these folders hold. Throws core::ConfigError when they lie in
// several run directories, for figures of several runs together are of none of them, and DataError
// as trace::find_traces does.
trace::FoundTraces traces_of_one_run(const std::vector<std::filesystem::path>& inputs);

// A word on what was left out; nothing where that is nothing.
std::optional<std::string> left_out_text(const trace::FoundTraces& found);

}  // namespace sidestream::launch
