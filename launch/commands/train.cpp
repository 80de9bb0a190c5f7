#include <cstdio>
#include <string>

#include "comm/mpi_environment.hpp"
#include "core/base/host_memory.hpp"
#include "launch/assembly/dry_run.hpp"
#include "launch/assembly/training_run.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/train_program.hpp"
#include "launch/doctor/system_files.hpp"
#include "launch/doctor/usable_memory.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

// What is printed instead of training: by the first rank only.
int print_and_leave(const std::string& text) {
  if (comm::LauncherEnvironment::read().rank == 0) std::fputs(text.c_str(), stdout);
  return 0;
}

std::optional<std::int64_t> free_bytes_of_host() {
  const core::HostMemory memory = core::read_host_memory();
  if (!memory.is_known()) return std::nullopt;
  return memory.usable_bytes();
}

// Of a GPU's memory nothing is known before there is a driver: the run itself asks then.
std::string plan_text(TrainOptions options) {
  const auto launcher = comm::LauncherEnvironment::read();
  DryRunPlace place{.launcher = launcher,
                    .ranks_on_host = launcher.local_size > 0 ? launcher.local_size : launcher.size,
                    .rank_bytes = doctor::kSmallestRankBytes,
                    .host_bytes = free_bytes_of_host(),
                    .has_gpu = doctor::read_gpus().on_bus > 0};
  const bool on_gpu =
      options.device == Device::kCuda || (options.device == Device::kAuto && place.has_gpu);
  if (on_gpu) {
    options.device = Device::kCuda;
  } else {
    place.usable_bytes = place.host_bytes;
  }
  return dry_run_text(std::move(options), place);
}

}  // namespace

int run_train(const CommandCall& call) {
  const TrainOptions options = parse_train_options(call.arguments);
  if (options.print_config) return print_and_leave(config_text(options));
  if (options.dry_run) return print_and_leave(plan_text(options));
  const std::string command_line = command_line_of(call);  // MPI takes words out of it
  return run_train_program(call, options, [&](Session& session) {
    return run_training(session, options, command_line);
  });
}

}  // namespace sidestream::launch
