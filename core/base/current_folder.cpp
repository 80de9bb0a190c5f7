#include "core/base/current_folder.hpp"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "core/base/exit_code.hpp"

namespace sidestream::core {

void require_current_folder() noexcept {
  char path[PATH_MAX];
  if (::getcwd(path, sizeof(path)) != nullptr || errno != ENOENT) return;
  constexpr std::string_view kMessage =
      "sidestream: the folder that this was started in has been removed: cd to one that is there\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage.data(), kMessage.size()));
  ::_exit(static_cast<int>(ExitCode::kConfig));
}

}  // namespace sidestream::core
