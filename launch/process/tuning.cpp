#include "launch/process/tuning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "core/base/processors.hpp"

namespace sidestream::launch {
namespace {

int set_threads(int threads) {
  const int count = std::max(1, threads);
  at::set_num_threads(count);
  return count;
}

}  // namespace

Seat seat_among(const comm::Topology& topology, const std::vector<std::string>& cores_by_rank) {
  const auto mine = static_cast<std::size_t>(topology.rank);
  Seat seat{.index = 0, .count = 0};
  for (std::size_t rank = 0; rank < cores_by_rank.size(); ++rank) {
    if (topology.hosts.at(rank) != topology.hosts.at(mine)) continue;
    if (cores_by_rank[rank] != cores_by_rank[mine]) continue;
    if (rank < mine) ++seat.index;
    ++seat.count;
  }
  return seat;
}

CpuShare share_of_cores(int cores, const Seat& seat) {
  if (cores < seat.count) return {seat.index % cores, 1};
  const int first = cores * seat.index / seat.count;
  const int end = cores * (seat.index + 1) / seat.count;
  return {first, end - first};
}

int pin_and_set_threads(const std::vector<int>& cores, const Seat& seat, std::optional<int> threads,
                        Pinning pinning) {
  if (cores.empty()) return set_threads(threads.value_or(1));
  const CpuShare share = share_of_cores(static_cast<int>(cores.size()), seat);
  if (seat.count > 1 && pinning == Pinning::kOn) {
    const auto first = cores.begin() + share.first_core;
    // Where that is not allowed the ranks' threads are where the system puts them.
    static_cast<void>(core::restrict_to({first, first + share.cores}));
  }
  return set_threads(threads.value_or(share.cores));
}

int pin_and_set_threads(comm::Communicator& communicator, std::optional<int> threads,
                        Pinning pinning) {
  const std::vector<int> cores = core::allowed_processors();
  const auto of_all_ranks =
      communicator.exchange(fmt::format("{}", fmt::join(cores, ",")), {.purpose = "cores"});
  return pin_and_set_threads(cores, seat_among(communicator.topology(), of_all_ranks), threads,
                             pinning);
}

void flush_denormals_on_all_threads(bool enabled) {
  at::globalContext().setFlushDenormal(enabled);
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1,
                   [enabled](int64_t, int64_t) { at::globalContext().setFlushDenormal(enabled); });
}

}  // namespace sidestream::launch
