// The run directory that a trace lies in.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <vector>

namespace sidestream::report {

// The nearest folder, from the path itself up to run/ of run/trace/step_N/file, that holds the
// record of a run (run.json or metrics.jsonl). Nothing when there is none.
std::optional<std::filesystem::path> run_directory_of(const std::filesystem::path& path);

// Of all of these, each once.
std::set<std::filesystem::path> run_directories_of(const std::vector<std::filesystem::path>& paths);

}  // namespace sidestream::report
