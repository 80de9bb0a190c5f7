// Whether a run fits into the memory of its GPUs or hosts, before anything large is allocated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/host_memory.hpp"
#include "launch/assembly/memory_advice.hpp"
#include "launch/device/device_session.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"
#include "launch/trainer/memory_use.hpp"

namespace sidestream::launch {

// Collective. Throws AgreedError (configuration) where it cannot fit, with need, have and the
// cheapest flag. Where it may not: on GPUs `notes` get that, on processors rank 0 prints it as a
// warning at once. Returns the plan of this rank. `options` must have its vocabulary set.
std::optional<MemoryUse> check_memory(Session& session, TrainOptions options,
                                      const DeviceSession& device, std::vector<std::string>& notes);

// Of ranks on a processor: the warning, or nothing. Throws ConfigError for what can never fit.
std::string check_host_memory(const TrainOptions& options, const RankPlanner& planner,
                              const core::HostMemory& memory);

}  // namespace sidestream::launch
