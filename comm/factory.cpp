#include "comm/factory.hpp"

#include "comm/host_communicator.hpp"
#include "comm/setup_watch.hpp"
#include "comm/single_communicator.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

Backend resolve(Backend wanted, const MpiEnvironment& environment) {
  if (wanted != Backend::kAuto) return wanted;
  return environment.size() > 1 ? Backend::kMpi : Backend::kSingle;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const MpiEnvironment& environment,
                                                const CommunicatorConfig& config,
                                                std::vector<std::string>& warnings) {
  const SetupWatch watch(LauncherEnvironment::read(), SetupWatch::Stage::kMakeCommunicator,
                         config.timeout_setup);
  switch (resolve(config.backend, environment)) {
    case Backend::kSingle:
      if (environment.size() > 1) {
        throw core::ConfigError("backend single is for one process, but " +
                                std::to_string(environment.size()) +
                                " ranks were started: use backend auto or mpi");
      }
      return std::make_unique<SingleCommunicator>();
    case Backend::kMpi:
      if (!environment.active()) {
        throw core::ConfigError(
            "backend mpi needs ranks that mpirun has started: use `launch/run -np N -- ...`, or "
            "backend single for one process");
      }
      return std::make_unique<HostCommunicator>(config, environment.failure_flag(), warnings);
    case Backend::kNccl:
      throw core::ConfigError(
          "this build has no NCCL backend yet: use backend mpi or auto (host ranks)");
    case Backend::kAuto:
      break;
  }
  throw core::ConfigError("unknown backend " + std::to_string(static_cast<int>(config.backend)));
}

}  // namespace sidestream::comm
