#include "launch/commands/one_process.hpp"

#include <fmt/format.h>

#include "comm/mpi_environment.hpp"
#include "core/base/error.hpp"

namespace sidestream::launch {

void require_one_process(const std::string& command) {
  const comm::LauncherEnvironment launcher = comm::LauncherEnvironment::read();
  if (launcher.size == 1) return;
  throw core::ConfigError(
      fmt::format("`sidestream {}` is for one process, and {} says {}: call it without mpirun, "
                  "launch/run or srun",
                  command, launcher.source, launcher.size));
}

}  // namespace sidestream::launch
