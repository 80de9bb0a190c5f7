#include "comm/factory.hpp"

#include "comm/device/device_factory.hpp"
#include "comm/host_communicator.hpp"
#include "comm/setup_watch.hpp"
#include "comm/single_communicator.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

// NCCL has a host communicator too: for its id, barriers and messages.
Backend resolve_host(Backend wanted, const MpiEnvironment& environment) {
  if (wanted == Backend::kSingle || wanted == Backend::kMpi) return wanted;
  return environment.size() > 1 ? Backend::kMpi : Backend::kSingle;
}

std::unique_ptr<Communicator> make_host_communicator(const MpiEnvironment& environment,
                                                     const CommunicatorConfig& config,
                                                     std::vector<std::string>& warnings) {
  if (resolve_host(config.backend, environment) == Backend::kSingle) {
    if (environment.size() > 1) {
      throw core::ConfigError("backend single is for one process, but " +
                              std::to_string(environment.size()) +
                              " ranks were started: use backend auto or mpi");
    }
    return std::make_unique<SingleCommunicator>();
  }
  if (!environment.active()) {
    throw core::ConfigError(
        "backend mpi needs ranks that mpirun has started: use `launch/run -np N -- ...`, or "
        "backend single for one process");
  }
  return std::make_unique<HostCommunicator>(config, environment.failure_flag(), warnings);
}

}  // namespace

void choose_device(CommunicatorConfig& config) {
  if (config.device == DeviceWish::kCpu && config.backend != Backend::kNccl) return;
  config.gpu = find_device(*cuda::make_driver(), LauncherEnvironment::read().local_rank);
}

std::unique_ptr<Communicator> make_communicator(const MpiEnvironment& environment,
                                                const CommunicatorConfig& config,
                                                std::vector<std::string>& warnings) {
  const SetupWatch watch(LauncherEnvironment::read(), SetupWatch::Stage::kMakeCommunicator,
                         config.timeout_setup);
  return place_on_device(make_host_communicator(environment, config, warnings), config,
                         DeviceLibraries::of_this_build(),
                         {.timeout_setup = config.timeout_setup,
                          .timeout_collective = config.timeout_collective,
                          .setup_flag = config.setup_flag,
                          .collective_flag = config.collective_flag,
                          .failed = environment.failure_flag(),
                          .failure_hook = config.failure_hook,
                          .flights = config.flights,
                          .check_collectives = config.check_collectives,
                          .tuning = config.nccl},
                         warnings);
}

}  // namespace sidestream::comm
