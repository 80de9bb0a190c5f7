#include <cstdio>
#include <new>

#include "core/base/error.hpp"
#include "core/base/printable.hpp"
#include "launch/trace/trace_commands.hpp"

namespace sidestream::launch {

int report_trace_failure(const std::exception& error) {
  core::ExitCode code = core::ExitCode::kOther;
  const char* text = error.what();
  if (const auto* own = dynamic_cast<const core::Error*>(&error)) code = own->code();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    code = core::ExitCode::kMemory;
    text = "out of memory: give fewer files at once";
  }
  std::fflush(stdout);
  std::fprintf(stderr, "sidestream-trace: %s\n", core::printable_lines(text).c_str());
  return static_cast<int>(code);
}

}  // namespace sidestream::launch
