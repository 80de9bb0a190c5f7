#include "launch/process/tuning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace sidestream::launch {
namespace {

constexpr int kMostProcessors = 1 << 20;

// Of any number of processors: cpu_set_t ends at 1024.
class CpuMask {
 public:
  explicit CpuMask(int processors) : processors_(processors), set_(CPU_ALLOC(processors)) {
    if (!set_) throw std::bad_alloc();
    CPU_ZERO_S(bytes(), set_.get());
  }

  void add(int core) { CPU_SET_S(core, bytes(), set_.get()); }
  std::vector<int> cores() const {
    std::vector<int> cores;
    for (int core = 0; core < processors_; ++core) {
      if (CPU_ISSET_S(core, bytes(), set_.get())) cores.push_back(core);
    }
    return cores;
  }
  std::size_t bytes() const { return CPU_ALLOC_SIZE(processors_); }
  cpu_set_t* get() const { return set_.get(); }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  int processors_;
  std::unique_ptr<cpu_set_t, Free> set_;
};

int set_threads(int threads) {
  const int count = std::max(1, threads);
  at::set_num_threads(count);
  return count;
}

}  // namespace

std::vector<int> allowed_cores() {
  // The kernel refuses a mask that is smaller than its own.
  for (int most = CPU_SETSIZE; most <= kMostProcessors; most *= 2) {
    CpuMask mask(most);
    if (sched_getaffinity(0, mask.bytes(), mask.get()) == 0) return mask.cores();
  }
  return {};
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

int pin_and_set_threads(const std::vector<int>& cores, const Seat& seat, std::optional<int> threads,
                        Pinning pinning) {
  if (cores.empty()) return set_threads(threads.value_or(1));
  const CpuShare share = share_of_cores(static_cast<int>(cores.size()), seat);
  if (seat.count > 1 && pinning == Pinning::kOn) {
    CpuMask mask(cores.back() + 1);
    for (int i = 0; i < share.cores; ++i)
      mask.add(cores[static_cast<std::size_t>(share.first_core + i)]);
    // Where that is not allowed the ranks' threads are where the system puts them.
    static_cast<void>(sched_setaffinity(0, mask.bytes(), mask.get()));
  }
  return set_threads(threads.value_or(share.cores));
}

int pin_and_set_threads(comm::Communicator& communicator, std::optional<int> threads,
                        Pinning pinning) {
  const std::vector<int> cores = allowed_cores();
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
