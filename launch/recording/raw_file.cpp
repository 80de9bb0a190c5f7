#include "launch/recording/raw_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "core/base/file.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

fs::path unfinished_of(const fs::path& path) {
  fs::path unfinished = path;
  unfinished += ".tmp";
  return unfinished;
}

// What the system says of one more byte: the folder is gone, or a limit of files or a quota is
// reached. On a full disk the last block may have room for it.
int error_of_more(const fs::path& unfinished) noexcept {
  const core::UniqueFd fd(
      ::open(unfinished.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd || ::write(fd.get(), " ", 1) < 0) return errno;
  std::error_code error;
  const fs::space_info space = fs::space(unfinished, error);
  constexpr std::uintmax_t kTooLittle = 1u << 20;
  return !error && space.available < kTooLittle ? ENOSPC : EIO;
}

}  // namespace

void RawFile::require() const {
  std::error_code error;
  if (fs::exists(path_, error)) return;
  errno = error_of_more(unfinished_of(path_));
  core::fail_to_write("PyTorch's profiler could not write", path_);
}

void RawFile::remove() const noexcept {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(unfinished_of(path_), ignored);
}

}  // namespace sidestream::launch
