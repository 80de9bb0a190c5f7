// Makes the communicator that a configuration asks for. The only place that knows which backends
// were compiled.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/device/device_choice.hpp"
#include "comm/failure_hook.hpp"
#include "comm/flight_recorder.hpp"
#include "comm/mpi_environment.hpp"
#include "comm/nccl/tuning.hpp"

namespace sidestream::comm {

enum class Backend { kAuto, kSingle, kMpi, kNccl };

struct CommunicatorConfig {
  Backend backend = Backend::kAuto;
  bool shared_memory = true;  // reduce in place in shared windows among the ranks of a node
  bool huge_pages = true;     // asked for, for the windows
  DeviceWish device = DeviceWish::kCpu;
  GpuSharing gpu_sharing = GpuSharing::kRefused;
  // Set what it does at any time; never null.
  std::shared_ptr<FailureHook> failure_hook = std::make_shared<FailureHook>();
  std::shared_ptr<FlightRecorder> flights = std::make_shared<FlightRecorder>();  // never null
  DeviceFinding gpu = {.problem = "nobody has looked for one"};  // of choose_device()
  std::chrono::milliseconds timeout_setup{std::chrono::minutes(5)};
  std::chrono::milliseconds timeout_collective{std::chrono::minutes(3)};
  // The flags that set these two, for their messages; static, empty where there are none.
  std::string_view setup_flag = {};
  std::string_view collective_flag = {};
  nccl::Tuning nccl = {};
  bool check_collectives = false;  // all ranks compare every call before its data moves
};

// Before MPI starts: looks for the GPU of this rank, by its number on the node, when `config` may
// use one, and makes it the device of the calling thread. Never throws; what it found is in
// config.gpu.
void choose_device(CommunicatorConfig& config);

// Collective over the ranks of `environment`. Throws ConfigError for a backend that this build or
// job does not have, and for ranks that run different builds. Past timeout_setup the process ends
// with exit code 6 and names the ranks that did not come. Warnings (too little shared memory,
// binding to one core) are given to rank 0 as text, see `warnings`.
std::unique_ptr<Communicator> make_communicator(const MpiEnvironment& environment,
                                                const CommunicatorConfig& config,
                                                std::vector<std::string>& warnings);

}  // namespace sidestream::comm
