#include "launch/reporting/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace sidestream::launch {
namespace {

constexpr const char* kColumnsVariable = "SIDESTREAM_TERMINAL_COLUMNS";  // set by launch/run

// Ends with a null character.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{""} : std::string_view{value};
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

int columns_of(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

int Terminal::current_width_columns() const {
  constexpr int kUnknown = 80;
  // The terminal's own, where this is it, changes with its window.
  if (const int columns = columns_of(fd); columns > 0) return columns;
  return width_columns > 0 ? width_columns : kUnknown;
}

std::size_t Terminal::text_width_columns() const {
  constexpr int kNarrowest = 40, kWidest = 100;  // below, a word a line says no more
  if (!interactive) return kWidest;
  return static_cast<std::size_t>(std::clamp(current_width_columns(), kNarrowest, kWidest));
}

std::string Terminal::redrawn(const std::string& line) const {
  const int width = std::max(current_width_columns(), 1);
  return "\r" + line.substr(0, static_cast<std::size_t>(width - 1)) + "\033[K";
}

// Open MPI gives every rank a pseudo-terminal without a size, whatever mpirun itself writes to.
// Nobody looks at that one, unless launch/run, which sees the real terminal, says so.
Terminal detect_terminal(int fd) {
  Terminal terminal{.fd = fd};
  terminal.width_columns = std::atoi(environment(kColumnsVariable).data());
  const bool looked_at = terminal.width_columns > 0 || columns_of(fd) > 0;
  terminal.interactive = looked_at && isatty(fd) == 1 && environment("TERM") != "dumb";
  terminal.color = terminal.interactive && environment("NO_COLOR").empty();
  terminal.utf8 = locale_is_utf8();
  return terminal;
}

}  // namespace sidestream::launch
