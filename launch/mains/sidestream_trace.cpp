// `sidestream-trace COMMAND ...`: parses the command, runs it, turns an exception into one line and
// an exit code.

#include <cstdio>
#include <exception>

#include "core/base/bus_error.hpp"
#include "core/base/file_size_limit.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/standard_streams.hpp"
#include "launch/trace/trace_commands.hpp"

namespace {

namespace core = sidestream::core;
namespace launch = sidestream::launch;

int run(const launch::TraceInvocation& invocation) {
  switch (invocation.command) {
    case launch::TraceCommand::kReport:
      return launch::run_report(launch::parse_report_options(invocation.arguments));
    case launch::TraceCommand::kMerge:
      return launch::run_merge(launch::parse_merge_options(invocation.arguments));
    case launch::TraceCommand::kCompare:
      return launch::run_compare(launch::parse_compare_options(invocation.arguments));
    case launch::TraceCommand::kRoofline:
      return launch::run_roofline(launch::parse_roofline_options(invocation.arguments));
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  core::open_closed_streams();
  core::report_file_size_limit();
  core::explain_bus_errors("sidestream-trace");
  try {
    const auto invocation =
        launch::parse_trace_invocation(argc, argv, "sidestream-trace " SIDESTREAM_VERSION "\n");
    if (invocation.action == launch::TraceInvocation::Action::kPrintText) {
      std::fputs(invocation.text.c_str(), stdout);
      return core::with_output_written("sidestream-trace", 0);
    }
    return core::with_output_written("sidestream-trace", run(invocation));
  } catch (const std::exception& error) {
    return launch::report_trace_failure(error);
  }
}
