#include "profiling/report/run_directory.hpp"

namespace sidestream::report {

namespace fs = std::filesystem;

std::optional<fs::path> run_directory_of(const fs::path& path) {
  constexpr int kLevels = 4;
  fs::path folder = fs::absolute(path);
  for (int level = 0; level < kLevels; ++level, folder = folder.parent_path()) {
    if (fs::exists(folder / "run.json") || fs::exists(folder / "metrics.jsonl")) return folder;
  }
  return std::nullopt;
}

}  // namespace sidestream::report
