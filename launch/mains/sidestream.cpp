// `sidestream COMMAND ...`: parses the command, runs it, turns an exception into one line and an
// exit code.

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "core/base/bus_error.hpp"
#include "core/base/current_folder.hpp"
#include "core/base/file_size_limit.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/standard_streams.hpp"
#include "launch/commands/commands.hpp"
#include "launch/options/command_table.hpp"
#include "launch/process/build_summary.hpp"
#include "launch/process/program.hpp"

namespace {

namespace core = sidestream::core;
namespace launch = sidestream::launch;

int run(const launch::Invocation& invocation, int& argc, char**& argv) {
  const launch::CommandCall call{argc, argv, invocation.arguments};
  switch (invocation.command) {
    case launch::Command::kTrain:
      return launch::run_train(call);
    case launch::Command::kPrepare:
      return launch::run_prepare(call);
    case launch::Command::kGenerate:
      return launch::run_generate(call);
    case launch::Command::kBench:
      return launch::run_bench(call);
    case launch::Command::kSummary:
      return launch::run_summary(call);
    case launch::Command::kVerify:
      return launch::run_verify(call);
    case launch::Command::kDoctor:
      return launch::run_doctor(call);
  }
  return 1;
}

// Before the initialisation of shared libraries: that of LibTorch's MKL ends a process without a
// current folder, and says that LibTorch cannot be loaded.
__attribute__((section(".preinit_array"),
               used)) void (*const before_libraries)() = core::require_current_folder;

}  // namespace

int main(int argc, char** argv) {
  core::open_closed_streams();
  core::report_file_size_limit();
  core::explain_bus_errors(launch::name_in_messages());
  try {
    const auto invocation =
        launch::parse_invocation(argc, argv, std::string(launch::build_summary_text()));
    if (invocation.action == launch::Invocation::Action::kPrintText) {
      std::fputs(invocation.text.c_str(), stdout);
      return core::with_output_written("sidestream", 0);
    }
    return core::with_output_written("sidestream", run(invocation, argc, argv));
  } catch (const std::exception& error) {
    return launch::report_early(error);
  }
}
