#include "core/checkpoint/run_leftovers.hpp"

#include <filesystem>
#include <regex>
#include <string>
#include <system_error>
#include <vector>

#include "core/checkpoint/checkpoint_store.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;

// What write_file_atomically() adds to a name: its host and a random number; earlier versions added
// the number of the process.
constexpr const char* kTemporary = R"(\.tmp\.([0-9]+|.+\.[0-9a-f]{16}))";

// write_file_atomically(), files of traces, LibTorch's own.
const std::regex& unfinished() {
  static const std::regex pattern(std::string(".*") + kTemporary +
                                  R"(|.*\.partial|\.raw_[0-9]+\.json(\.tmp)?)");
  return pattern;
}

// In the root people may have files of their own.
const std::regex& unfinished_in_root() {
  static const std::regex pattern(R"((config\.cfg|run\.json|metrics\.jsonl(\.damaged)?))" +
                                  std::string(kTemporary));
  return pattern;
}

// probe_writing()
const std::regex& probes() {
  static const std::regex pattern(R"(\.probe\..+)");
  return pattern;
}

template <typename Iterator>
std::size_t remove_matching(const fs::path& folder, const std::regex& pattern) {
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (Iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const bool is_file = fs::is_regular_file(entry->symlink_status(ignored));
    if (is_file && std::regex_match(entry->path().filename().string(), pattern))
      leftovers.push_back(entry->path());
  }
  std::size_t gone = 0;
  for (const fs::path& leftover : leftovers) gone += fs::remove(leftover, ignored) ? 1 : 0;
  return gone;
}

}  // namespace

std::size_t remove_run_leftovers(const RunPaths& paths) noexcept {
  try {
    std::size_t gone = remove_matching<fs::directory_iterator>(paths.root(), unfinished_in_root());
    for (const fs::path& folder : {paths.root(), paths.checkpoints()})
      gone += remove_matching<fs::directory_iterator>(folder, probes());
    for (const fs::path& folder : {paths.flight(), paths.traces()})
      gone += remove_matching<fs::recursive_directory_iterator>(folder, unfinished());
    return gone + CheckpointStore(paths.checkpoints()).remove_leftovers({}, Leftovers::kHalves);
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace sidestream::checkpoint
