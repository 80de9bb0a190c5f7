#include "core/checkpoint/find_checkpoint.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/checkpoint/run_directory.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string reasons(const std::vector<SkippedCheckpoint>& skipped) {
  if (skipped.empty()) return "none";
  std::string text = fmt::format("{} that cannot be used", skipped.size());
  for (const SkippedCheckpoint& one : skipped) text += fmt::format("; {}", one.reason);
  return text;
}

}  // namespace

FoundCheckpoint find_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path / kManifestFile, ignored))
    return {.checkpoint = open_checkpoint(path), .skipped = {}};
  const fs::path inside = RunPaths(path).checkpoints();
  NewestCheckpoint newest =
      CheckpointStore(fs::is_directory(inside, ignored) ? inside : path).newest_valid();
  if (newest.checkpoint) return {.checkpoint = *newest.checkpoint, .skipped = newest.skipped};
  throw core::CheckpointError(
      core::FileFault{.file = path.string(),
                      .offset_bytes = {},
                      .expected = "a checkpoint, or a run directory with a valid one",
                      .found = reasons(newest.skipped)});
}

}  // namespace sidestream::checkpoint
