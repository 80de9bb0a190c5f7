#include "comm/device/device_factory.hpp"

#include <cstdlib>
#include <utility>

#include "comm/device/nccl_finding.hpp"
#include "comm/device/single_gpu_communicator.hpp"
#include "comm/device/staged_communicator.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

std::vector<DeviceFinding> exchange_findings(Communicator& host, const DeviceFinding& mine) {
  std::vector<DeviceFinding> findings;
  for (const std::string& text : host.exchange(mine.to_text(), {})) {
    findings.push_back(DeviceFinding::from_text(text));
  }
  return findings;
}

// All ranks are here, so that they can part in good order: a peer that waits would be told of an
// exception instead of the reason.
[[noreturn]] void refuse(std::unique_ptr<Communicator> host, const std::string& message) {
  host.reset();
  throw core::ConfigError(message);
}

std::string first_problem(Communicator& host, const std::string& mine) {
  const auto all = host.exchange(mine, {});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    return host.topology().place_of(rank) + ": " + all[rank];
  }
  return {};
}

// NCCL refuses two ranks on one GPU of one host, unless they seem to be on two.
void pretend_own_host(const Topology& topology) {
  const std::string name = topology.hosts.at(static_cast<std::size_t>(topology.rank)) + "-rank" +
                           std::to_string(topology.rank);
  setenv("NCCL_HOSTID", name.c_str(), /*overwrite=*/0);
}

std::unique_ptr<Communicator> with_nccl(std::unique_ptr<Communicator> host, DeviceContext context,
                                        const CommunicatorConfig& config,
                                        const DeviceLibraries& libraries,
                                        const NcclConfig& nccl_config) {
  NcclFinding found = find_nccl(libraries.load_nccl);
  const std::string problem = first_problem(*host, found.problem);
  if (!problem.empty()) refuse(std::move(host), problem);
  if (config.gpu_sharing == GpuSharing::kAllowed) pretend_own_host(host->topology());
  return std::make_unique<NcclCommunicator>(std::move(host), std::move(context),
                                            std::move(found.api), nccl_config);
}

}  // namespace

DeviceLibraries DeviceLibraries::of_this_build() {
  return {.driver = cuda::make_driver(), .load_nccl = nccl::load_api};
}

std::unique_ptr<Communicator> place_on_device(std::unique_ptr<Communicator> host,
                                              const CommunicatorConfig& config,
                                              const DeviceLibraries& libraries,
                                              const NcclConfig& nccl_config,
                                              std::vector<std::string>& warnings) {
  const bool wants_nccl = config.backend == Backend::kNccl;
  if (config.device == DeviceWish::kCpu && !wants_nccl) return host;
  const auto findings = exchange_findings(*host, config.gpu);
  const DeviceWish wish = wants_nccl ? DeviceWish::kCuda : config.device;
  const DeviceDecision decision =
      decide_device(wish, findings, host->topology(), config.gpu_sharing);
  if (!decision.refusal.empty()) refuse(std::move(host), decision.refusal);
  for (const std::string& warning : decision.warnings) warnings.push_back(warning);
  if (!decision.on_gpu) return host;

  DeviceContext context{.driver = libraries.driver,
                        .index = config.gpu.index,
                        .free_bytes_at_start = config.gpu.memory.free_bytes};
  const bool alone = host->size() == 1 && !wants_nccl;
  if (alone) return std::make_unique<SingleGpuCommunicator>(std::move(host), std::move(context));
  if (config.backend == Backend::kMpi) {
    return std::make_unique<StagedCommunicator>(std::move(host), std::move(context));
  }
  return with_nccl(std::move(host), std::move(context), config, libraries, nccl_config);
}

}  // namespace sidestream::comm
