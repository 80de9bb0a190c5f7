#include "core/base/open_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace sidestream::core {
namespace {

// Of this path, or of what it leads to, the folder in /proc and the name: /proc/12/fd and 1.
std::optional<std::pair<std::string, std::string>> place_of_open_file(std::filesystem::path path) {
  constexpr int kMostLinks = 16;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const auto folder =
        std::filesystem::weakly_canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    if (!error && folder.string().starts_with("/proc/"))
      return std::pair(folder.string(), path.filename().string());
    const auto next = std::filesystem::read_symlink(path, error);
    if (error) return std::nullopt;
    path = path.parent_path() / next;  // an absolute one replaces the folder
  }
  return std::nullopt;
}

}  // namespace

bool leads_to_open_file(const std::filesystem::path& path) {
  return place_of_open_file(path).has_value();
}

UniqueFd open_stream(const std::filesystem::path& path) {
  const auto place = place_of_open_file(path);
  const bool own = place && place->first == "/proc/" + std::to_string(::getpid()) + "/fd";
  // With the position of the one who opened it: a second one would write over what stands there.
  UniqueFd fd(own ? ::fcntl(std::atoi(place->second.c_str()), F_DUPFD_CLOEXEC, 0)
                  : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) fail_to_write("cannot open", path);
  return fd;
}

}  // namespace sidestream::core
