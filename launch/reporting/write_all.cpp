#include "launch/reporting/write_all.hpp"

#include <unistd.h>

#include <cerrno>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw core::Error(core::system_error_text("cannot write", path, errno));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace sidestream::launch
