// Puts a communicator for GPU memory around a host communicator when that was asked for and all
// ranks can. With its own libraries, or with those of a test.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/device/nccl_communicator.hpp"
#include "comm/factory.hpp"

namespace sidestream::comm {

struct DeviceLibraries {
  std::shared_ptr<cuda::Driver> driver;
  std::function<std::shared_ptr<nccl::Api>()> load_nccl;

  static DeviceLibraries of_this_build();
};

// Collective over the ranks of `host`; returns `host` itself when the ranks train on their
// processors. Throws ConfigError on all ranks, after an orderly end of `host`.
std::unique_ptr<Communicator> place_on_device(std::unique_ptr<Communicator> host,
                                              const CommunicatorConfig& config,
                                              const DeviceLibraries& libraries,
                                              const NcclConfig& nccl_config,
                                              std::vector<std::string>& warnings);

}  // namespace sidestream::comm
