#include "launch/trace/nsys_program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<fs::path> on_path() {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const fs::path file = fs::path(folder) / "nsys";
    if (!folder.empty() && is_program(file)) return file;
  }
  return std::nullopt;
}

// bin/nsys of the last folder whose name begins so.
std::optional<fs::path> below(const fs::path& parent, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const fs::path file = at->path() / "bin/nsys";
    if (at->path().filename().string().starts_with(beginning) && is_program(file))
      found.push_back(file);
  }
  if (found.empty()) return std::nullopt;
  return *std::max_element(found.begin(), found.end());
}

// The program is in build/PRESET, and Debian's packages are in build/nsight.
std::optional<fs::path> fetched() {
  std::error_code error;
  const fs::path root =
      fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "nsight";
  if (!fs::exists(root / "complete", error)) return std::nullopt;
  for (fs::recursive_directory_iterator at(root / "root", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename() == "nsys" && is_program(at->path())) return at->path();
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> find_nsys() {
  if (auto found = on_path()) return found;
  if (auto found = below("/usr/local", "cuda")) return found;
  if (auto found = below("/opt/nvidia/nsight-systems", "")) return found;
  return fetched();
}

}  // namespace sidestream::launch
