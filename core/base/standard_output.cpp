#include "core/base/standard_output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "core/base/exit_code.hpp"
#include "core/base/printable.hpp"

namespace sidestream::core {

int with_output_written(const char* program, int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  if (exit_code != 0 || errno == EPIPE) return exit_code;
  std::fprintf(stderr, "%s: cannot write to standard output: %s\n", program, std::strerror(errno));
  return static_cast<int>(ExitCode::kOther);
}

void print_remark(std::string_view text) noexcept {
  try {
    std::fputs(printable_lines(text).c_str(), stderr);
  } catch (const std::exception&) {
    return;  // no memory for a line: what has none left says so itself
  }
}

}  // namespace sidestream::core
