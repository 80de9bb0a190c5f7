#include "launch/assembly/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "comm/shared_window.hpp"
#include "core/base/error.hpp"
#include "core/base/warning.hpp"
#include "launch/assembly/gib_text.hpp"
#include "launch/assembly/offload_assembly.hpp"
#include "launch/assembly/run_start.hpp"
#include "launch/reporting/memory_peak.hpp"

namespace sidestream::launch {
namespace {

PlanPlace place_of(const comm::Topology& ranks) {
  using parallel::RanksShare;
  return {.ranks = ranks.size,
          .ranks_on_host = ranks.local_size,
          .share = ranks.node_count > 1 ? RanksShare::kNothing : RanksShare::kMemory};
}

// One copy for all ranks needs room in /dev/shm: without it, each rank is going to have its own.
RankPlanner planner_of(const TrainOptions& options, const comm::Topology& ranks) {
  const RankPlanner planner(options, place_of(ranks));
  const parallel::MemoryPlan state = planner.plan(options).state;
  if (!state.shares_state) return planner;
  const std::size_t shared = (state.total_bytes() - state.own_gradient_bytes()) *
                             static_cast<std::size_t>(ranks.local_size);
  if (shared <= comm::shared_memory_free_bytes()) return planner;
  PlanPlace place = place_of(ranks);
  place.share = parallel::RanksShare::kNothing;
  return {options, place};
}

// Refused: a dry plan of weights, gradients and moments against what is free, and of what lies on a
// GPU's host. Activations are an estimate: of those a note.
void check_gpu_memory(const TrainOptions& options, const RankPlanner& planner,
                      const DeviceSession& device, std::vector<std::string>& notes) {
  const core::HostMemory host = core::read_host_memory();
  const std::optional<std::int64_t> host_bytes =
      host.is_known() ? std::optional(host.usable_bytes()) : std::nullopt;
  const PlanPlace& place = planner.place();
  const RankPlan plan = planner.plan(options);
  const std::string advice =
      memory_advice(options, [&](const TrainOptions& other) { return planner.plan(other); },
                    {.memory = MemoryOf::kGpu,
                     .ranks = place.ranks,
                     .ranks_on_host = place.ranks_on_host,
                     .usable_bytes = device.usable_bytes(),
                     .host_usable_bytes = host_bytes});
  device.require_memory(plan.state_bytes(), advice);
  require_host_memory(options, {.ranks = place.ranks_on_host,
                                .rank_bytes = plan.pinned_bytes(),
                                .other_bytes = static_cast<std::int64_t>(plan.copied_bytes),
                                .usable_bytes = host_bytes});
  if (!advice.empty()) notes.push_back(advice);
}

// The ranks of a host find much the same, and one warning is enough.
void warn_of_the_first(Session& session, const TrainOptions& options, const std::string& mine) {
  comm::Communicator& communicator = session.communicator();
  const std::vector<std::string> all =
      communicator.exchange(mine, {.deadline = options.timeouts.setup,
                                   .deadline_flag = "--timeout-setup",
                                   .purpose = "memory of hosts"});
  if (!session.is_first_rank()) return;
  const auto first = std::ranges::find_if(all, [](const auto& text) { return !text.empty(); });
  if (first == all.end()) return;
  const comm::Topology& ranks = communicator.topology();
  const auto rank = static_cast<std::size_t>(first - all.begin());
  core::print_warning(ranks.node_count > 1 ? ranks.hosts.at(rank) + ": " + *first : *first);
}

// What this process has taken so far; nothing where the system does not say.
std::optional<std::int64_t> taken_bytes(const DeviceSession& device,
                                        const comm::Communicator& communicator) {
  if (device.on_gpu()) return device_memory_peak_bytes(device.device(), communicator);
  return current_pss_bytes();
}

}  // namespace

// Note [A host that seems too small]
//
// On a host a plan that exceeds what is free is a warning and no refusal: other programs end,
// caches shrink, swap takes what is idle, and the activations are an estimate (within a fifth).
// What exceeds all memory and swap that the host or its control group will ever give is refused,
// with a fifth of the activations left out: the kernel would end a rank in the middle of the run,
// by a signal that says nothing. A checkpoint's copy is left out of it, too: saving could be told
// to do without.
std::string check_host_memory(const TrainOptions& options, const RankPlanner& planner,
                              const core::HostMemory& memory) {
  if (!memory.is_known()) return {};
  const PlanOf plan_of = [&](const TrainOptions& other) { return planner.plan(other); };
  MemoryRoom room{.ranks = planner.place().ranks,
                  .ranks_on_host = planner.place().ranks_on_host,
                  .usable_bytes = memory.usable_bytes()};
  const RankPlan plan = planner.plan(options);
  const std::size_t certain =
      std::max(plan.state.total_bytes() + plan.activations.peak() / 5 * 4, plan.state.start_bytes);
  const std::int64_t least = room.ranks_on_host * static_cast<std::int64_t>(certain);
  if (least <= memory.most_bytes()) return memory_advice(options, plan_of, room);
  room.usable_bytes = memory.most_bytes();
  throw core::ConfigError(
      fmt::format("Memory: {} rank(s) need at least {}, and this machine has {} in all, swap "
                  "included: {}",
                  room.ranks_on_host, gib_text(least), gib_text(memory.most_bytes()),
                  way_out(options, plan_of, room)));
}

std::optional<MemoryUse> check_memory(Session& session, TrainOptions options,
                                      const DeviceSession& device,
                                      std::vector<std::string>& notes) {
  const comm::Communicator& communicator = session.communicator();
  options.device = device.on_gpu() ? Device::kCuda : Device::kCpu;
  std::string warning;
  std::optional<MemoryUse> use;
  agree_on_setup(session, options, [&] {
    const std::optional<std::int64_t> taken = taken_bytes(device, communicator);
    const RankPlanner planner = planner_of(options, communicator.topology());
    if (device.on_gpu()) {
      check_gpu_memory(options, planner, device, notes);
    } else {
      warning = check_host_memory(options, planner, core::read_host_memory());
    }
    if (!taken) return;
    const RankPlan plan = planner.plan(options);
    const std::size_t copy = device.on_gpu() ? 0 : plan.snapshot.first_rank;  // on the host
    use = {.on_gpu = device.on_gpu(),
           .planned_bytes = *taken + static_cast<std::int64_t>(plan.peak_bytes(copy))};
  });
  warn_of_the_first(session, options, warning);
  return use;
}

}  // namespace sidestream::launch
