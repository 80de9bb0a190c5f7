// A job of GPU ranks in which something goes wrong, on a machine without a GPU: real ranks, real
// messages between them, fakes of CUDA and NCCL. Messages and exit codes as the trainer's.
// device_failures_test.cpp starts it under mpirun.
//
//   device_failure_program <scenario> <shared-memory: on|off>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "comm/device/device_factory.hpp"
#include "comm/factory.hpp"
#include "core/base/error.hpp"
#include "tests/comm/device/fake_nccl.hpp"

namespace {

namespace comm = sidestream::comm;
namespace core = sidestream::core;

constexpr std::chrono::milliseconds kDeadline{600};
constexpr std::chrono::milliseconds kSetupDeadline{2000};
constexpr std::chrono::seconds kLongerThanTheTest{60};

struct Fakes {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  std::shared_ptr<comm::nccl::FakeNccl> nccl = std::make_shared<comm::nccl::FakeNccl>(driver);
  bool has_nccl = true;
};

// What this rank finds on its machine.
Fakes machine_of(const std::string& scenario, int rank) {
  Fakes fakes;
  fakes.driver->devices = scenario == "shared-gpu" ? 1 : 4;
  const bool odd = rank == 1;
  if (scenario == "no-gpu-anywhere") fakes.driver->devices = 0;
  if (odd && scenario == "no-gpu") fakes.driver->devices = 0;
  if (scenario == "no-such-index") {
    setenv("CUDA_VISIBLE_DEVICES", "9", 1);
    fakes.driver->devices = 0;
    fakes.driver->none_visible = true;
  }
  if (odd && scenario == "mixed") fakes.driver->names = {"Fake 50"};
  if (odd && scenario == "busy") fakes.driver->set_device_failure = "device is in exclusive use";
  if (odd && scenario == "no-nccl") fakes.has_nccl = false;
  if (odd && scenario == "other-nccl") fakes.nccl->runtime = 22304;
  if (odd && scenario == "memory") fakes.driver->memory_is_full = !(fakes.nccl->has_memory = false);
  if (scenario == "no-network") fakes.nccl->init_failure = "unhandled system error";
  if (odd && scenario == "one-unconnected") fakes.nccl->init_failure = "unhandled system error";
  if (!odd && scenario == "one-unconnected") fakes.nccl->polls_until_connected = -1;
  if (odd && scenario == "interface") setenv("NCCL_SOCKET_IFNAME", "=nothing", 1);
  return fakes;
}

struct GpuRank {
  std::unique_ptr<comm::Communicator> communicator;
  Fakes fakes;
};

GpuRank make_rank(const comm::MpiEnvironment& environment, const std::string& scenario,
                  bool shared) {
  comm::CommunicatorConfig config{.backend = comm::Backend::kMpi,
                                  .shared_memory = shared,
                                  .timeout_setup = kSetupDeadline,
                                  .timeout_collective = kDeadline};
  std::vector<std::string> warnings;
  auto host = comm::make_communicator(environment, config, warnings);
  const Fakes fakes = machine_of(scenario, host->rank());
  config.backend = comm::Backend::kAuto;
  config.device = comm::DeviceWish::kAuto;
  config.gpu = comm::find_device(*fakes.driver, host->topology().local_rank);
  const auto load = [fakes]() -> std::shared_ptr<comm::nccl::Api> {
    if (fakes.has_nccl) return fakes.nccl;
    throw core::ConfigError("backend nccl: the NCCL library cannot be loaded: no such file");
  };
  const int rank = host->rank();
  auto made =
      comm::place_on_device(std::move(host), config, {.driver = fakes.driver, .load_nccl = load},
                            {.timeout_setup = kSetupDeadline,
                             .timeout_collective = kDeadline,
                             .failed = environment.failure_flag()},
                            warnings);
  if (rank == 0) {
    for (const std::string& warning : warnings)
      std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  return {std::move(made), fakes};
}

// Two collectives that work, then nothing on the device is done any more, and rank 1 does not come
// to the third.
void play(const GpuRank& rank, const std::string& scenario) {
  comm::Communicator& communicator = *rank.communicator;
  if (scenario == "memory") communicator.allocate(1 << 20);
  std::array<float, 4> data{};
  const auto all_reduce = [&](int bucket) {
    communicator.all_reduce(data.data(), data.size(), core::DType::kFloat32, {.bucket = bucket})
        .wait();
  };
  all_reduce(0);
  all_reduce(1);
  communicator.barrier();
  if (scenario == "late" || scenario == "announces") rank.fakes.driver->hold();
  if (scenario == "unstarted") rank.fakes.nccl->polls_until_launched = -1;
  const bool culprit = communicator.rank() == 1;
  if (culprit && scenario == "announces") communicator.announce_failure("rank 1: the disk is full");
  if (culprit && (scenario == "late" || scenario == "unstarted" || scenario == "announces"))
    std::this_thread::sleep_for(kLongerThanTheTest);
  all_reduce(7);
  communicator.barrier();
}

void print(const core::Error& error) {
  std::fprintf(stderr, "FAILED(%d): %s\n", static_cast<int>(error.code()), error.what());
}

// As launch's run_program: what all ranks threw together is printed once, by rank 0.
int run(comm::MpiEnvironment& environment, const std::string& scenario, bool shared) {
  GpuRank made;
  try {
    made = make_rank(environment, scenario, shared);
    play(made, scenario);
    return 0;
  } catch (const core::AgreedError& error) {
    if (environment.rank() == 0) print(error);
    return static_cast<int>(error.code());
  } catch (const core::ConfigError& error) {
    if (environment.rank() == 0) print(error);
    return static_cast<int>(error.code());
  } catch (const core::Error& error) {
    print(error);
    if (made.communicator) made.communicator->announce_failure(error.what());
    environment.abort(static_cast<int>(error.code()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  comm::MpiEnvironment environment(&argc, &argv, kSetupDeadline);
  return run(environment, argv[1], std::strcmp(argv[2], "on") == 0);
}
