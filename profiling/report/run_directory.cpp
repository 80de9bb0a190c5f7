#include "profiling/report/run_directory.hpp"

#include "core/base/file.hpp"

namespace sidestream::report {

namespace fs = std::filesystem;

std::optional<fs::path> run_directory_of(const fs::path& path) {
  constexpr int kLevels = 4;
  fs::path folder = fs::absolute(path);
  for (int level = 0; level < kLevels; ++level, folder = folder.parent_path()) {
    if (core::is_there(folder / "run.json") || core::is_there(folder / "metrics.jsonl"))
      return folder;
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
