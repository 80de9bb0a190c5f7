#include "profiling/report/run_directory.hpp"

#include <system_error>

namespace sidestream::report {

namespace fs = std::filesystem;

std::optional<fs::path> run_directory_of(const fs::path& path) {
  constexpr int kLevels = 4;
  fs::path folder = fs::absolute(path);
  const auto is_there = [&](const char* name) {
    std::error_code no_such_place;  // a link to itself, a name that is too long
    return fs::exists(folder / name, no_such_place);
  };
  for (int level = 0; level < kLevels; ++level, folder = folder.parent_path()) {
    if (is_there("run.json") || is_there("metrics.jsonl")) return folder;
  }
  return std::nullopt;
}

std::set<fs::path> run_directories_of(const std::vector<fs::path>& paths) {
  std::set<fs::path> folders;
  for (const fs::path& path : paths) {
    if (const auto folder = run_directory_of(path)) folders.insert(fs::weakly_canonical(*folder));
  }
  return folders;
}

}  // namespace sidestream::report
