#include "launch/recording/raw_file.hpp"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "core/base/file.hpp"

namespace sidestream::launch {

namespace fs = std::filesystem;

void RawFile::require() const {
  std::error_code error;
  if (fs::exists(path_, error)) return;
  const auto space = fs::space(path_.parent_path(), error);
  constexpr std::uintmax_t kTooLittle = 1u << 20;
  errno = !error && space.available < kTooLittle ? ENOSPC : EIO;
  core::fail_to_write("PyTorch's profiler could not write", path_);
}

void RawFile::remove() const noexcept {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::path unfinished = path_;
  unfinished += ".tmp";
  fs::remove(unfinished, ignored);
}

}  // namespace sidestream::launch
