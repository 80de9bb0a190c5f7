#include "launch/reporting/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace sidestream::launch {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

// The first of these that is set decides (POSIX, chapter 8).
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

int Terminal::current_width_columns() const {
  constexpr int kUnknown = 80;
  if (width_columns > 0) return width_columns;
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknown;
}

Terminal detect_terminal(int fd) {
  Terminal terminal{.fd = fd};
  terminal.interactive = isatty(fd) == 1 && environment("TERM") != "dumb";
  terminal.color = terminal.interactive && environment("NO_COLOR").empty();
  terminal.utf8 = locale_is_utf8();
  return terminal;
}

}  // namespace sidestream::launch
