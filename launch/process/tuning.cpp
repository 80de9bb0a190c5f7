#include "launch/process/tuning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace sidestream::launch {

std::vector<int> allowed_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

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

int pin_and_set_threads(const std::vector<int>& cores, const Seat& seat,
                        std::optional<int> threads) {
  const CpuShare share = share_of_cores(static_cast<int>(cores.size()), seat);
  if (seat.count > 1) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int i = 0; i < share.cores; ++i)
      CPU_SET(cores[static_cast<std::size_t>(share.first_core + i)], &mask);
    sched_setaffinity(0, sizeof(mask), &mask);
  }
  const int count = std::max(1, threads.value_or(share.cores));
  at::set_num_threads(count);
  return count;
}

int pin_and_set_threads(comm::Communicator& communicator, std::optional<int> threads) {
  const std::vector<int> cores = allowed_cores();
  const auto of_all_ranks =
      communicator.exchange(fmt::format("{}", fmt::join(cores, ",")), {.purpose = "cores"});
  return pin_and_set_threads(cores, seat_among(communicator.topology(), of_all_ranks), threads);
}

void flush_denormals_on_all_threads(bool enabled) {
  at::globalContext().setFlushDenormal(enabled);
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1,
                   [enabled](int64_t, int64_t) { at::globalContext().setFlushDenormal(enabled); });
}

}  // namespace sidestream::launch
