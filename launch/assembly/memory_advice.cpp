#include "launch/assembly/memory_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "launch/assembly/gib_text.hpp"
#include "launch/assembly/memory_proposals.hpp"

namespace sidestream::launch {

std::int64_t needed_bytes(const RankPlan& plan, const MemoryRoom& room) {
  const auto training = static_cast<std::int64_t>(plan.training_bytes()) + room.rank_bytes;
  const auto start = static_cast<std::int64_t>(plan.state.start_bytes) + room.rank_bytes;
  if (room.memory == MemoryOf::kGpu) return std::max(training, start);  // copies go to the host
  return std::max(room.ranks_on_host * training + static_cast<std::int64_t>(plan.copied_bytes),
                  room.ranks_on_host * start);
}

bool shares_memory(const MemoryRoom& room) {
  return room.memory != MemoryOf::kGpu && room.ranks_on_host > 1;
}

std::string way_out(const TrainOptions& options, const PlanOf& plan_of, const MemoryRoom& room) {
  const std::vector<MemoryProposal> all = memory_proposals(options, plan_of, room);
  for (const MemoryProposal& one : all) {
    if (one.bytes > room.usable_bytes.value_or(0)) continue;
    return fmt::format("{} makes it about {}.", one.flags, gib_text(one.bytes));
  }
  const std::string most = all.empty() ? ""
                                       : fmt::format("{} still needs about {}; ", all.back().flags,
                                                     gib_text(all.back().bytes));
  return most +
         "take a smaller --batch-size-per-rank with more --grad-accumulation, or a shorter "
         "--sequence-length" +
         (shares_memory(room) ? ", or fewer ranks." : ".");
}

std::string memory_advice(const TrainOptions& options, const PlanOf& plan_of,
                          const MemoryRoom& room) {
  const std::int64_t needed = needed_bytes(plan_of(options), room);
  if (!room.usable_bytes || needed <= *room.usable_bytes) return {};
  const bool gpu = room.memory == MemoryOf::kGpu;
  return fmt::format("Memory: this {} has {} free for {} rank(s), and they need about {}: ",
                     gpu ? "GPU" : "machine", gib_text(*room.usable_bytes),
                     gpu ? 1 : room.ranks_on_host, gib_text(needed)) +
         way_out(options, plan_of, room);
}

}  // namespace sidestream::launch
