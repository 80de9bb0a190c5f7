// Whether a planned run fits into the memory of its host or its GPU, and the first flags that would
// make it fit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "launch/assembly/rank_plan.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

enum class MemoryOf { kHost, kGpu };

// What there is.
struct MemoryRoom {
  MemoryOf memory = MemoryOf::kHost;
  int ranks = 1;                // in the job
  int ranks_on_host = 1;        // they share a host's memory; a GPU is a rank's own
  std::int64_t rank_bytes = 0;  // what each takes beside its plan
  std::optional<std::int64_t> usable_bytes = {};       // for all of them; empty: not known
  std::optional<std::int64_t> host_usable_bytes = {};  // of a GPU's host, for --offload
  std::int64_t host_other_bytes = 0;                   // of that, what programs take
};

// A plan for other flags than those of the run.
using PlanOf = std::function<RankPlan(const TrainOptions&)>;

// Of all ranks that share this memory.
std::int64_t needed_bytes(const RankPlan& plan, const MemoryRoom& room);

// Empty where it fits or nothing is known, else sentences: what is needed, what is there, and the
// way out. `options` must have its vocabulary set.
std::string memory_advice(const TrainOptions& options, const PlanOf& plan_of,
                          const MemoryRoom& room);

// The first of these that makes it fit, each with what those before have, or that none does. First
// what changes no loss, the cheapest first: --loss-chunks auto, --zero 1, --recompute level by
// level, and on a GPU --offload residuals and optimizer, where its host has room for them; then
// what rounds: --optimizer-state-dtype bf16, --precision bf16. A flag that takes nothing away, or
// that the run would refuse, is left out.
std::string way_out(const TrainOptions& options, const PlanOf& plan_of, const MemoryRoom& room);

}  // namespace sidestream::launch
