#include <fmt/format.h>

#include <cstdio>

#include "comm/factory.hpp"
#include "core/base/file.hpp"
#include "launch/commands/commands.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/examination.hpp"
#include "launch/doctor/report.hpp"
#include "launch/options/doctor_options.hpp"
#include "launch/process/agreement.hpp"
#include "launch/process/program.hpp"
#include "launch/reporting/terminal.hpp"

namespace sidestream::launch {
namespace {

core::ExitCode code_of(const std::vector<doctor::Finding>& findings) {
  return doctor::worst_of(findings) == doctor::Level::kError ? core::ExitCode::kConfig
                                                             : core::ExitCode::kDone;
}

// By rank 0, which has seen everything.
void tell(const DoctorOptions& options, const doctor::JobFacts& job,
          const std::vector<doctor::Finding>& findings) {
  const Terminal terminal = detect_terminal(1);
  fmt::print("{}", doctor::text_of(
                       job, findings,
                       {.color = terminal.color, .width_columns = terminal.text_width_columns()}));
  std::fflush(stdout);
  if (!options.json.empty())
    core::write_file_atomically(options.json, doctor::json_of(job, findings));
}

core::ExitCode look(Session& session, const DoctorOptions& options,
                    const comm::DeviceFinding& gpu) {
  const auto job = doctor::examine(session, options, gpu);
  if (!job) {
    if (session.is_first_rank()) fmt::print("stopped before everything was looked at\n");
    return core::ExitCode::kPreempted;
  }
  core::ExitCode code = core::ExitCode::kDone;
  agree(session.communicator(), [&] {
    if (!session.is_first_rank()) return;
    const auto findings = doctor::judge(*job);
    code = code_of(findings);
    tell(options, *job, findings);
  });
  const auto codes = session.communicator().exchange(std::to_string(static_cast<int>(code)));
  return static_cast<core::ExitCode>(std::stoi(codes.front()));
}

}  // namespace

// The ranks meet on their processors, whatever GPUs there are: what is wrong with those is a
// finding.
int run_doctor(const CommandCall& call) {
  const DoctorOptions options = parse_doctor_options(call.arguments);
  comm::CommunicatorConfig config{.device = options.device};
  comm::choose_device(config);
  const comm::DeviceFinding gpu = config.gpu;
  config.device = comm::DeviceWish::kCpu;
  return run_program(call.argc, call.argv, config,
                     [&](Session& session) { return look(session, options, gpu); });
}

}  // namespace sidestream::launch
