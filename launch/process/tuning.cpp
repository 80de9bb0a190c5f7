#include "launch/process/tuning.hpp"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace sidestream::launch {
namespace {

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

}  // namespace

void keep_freed_memory() {
  malloc_trim(0);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
}

CpuShare share_of_cores(int cores, int local_rank, int local_size) {
  if (cores < local_size) return {local_rank % cores, 1};
  const int first = cores * local_rank / local_size;
  const int end = cores * (local_rank + 1) / local_size;
  return {first, end - first};
}

int pin_and_set_threads(int local_rank, int local_size, std::optional<int> threads) {
  const std::vector<int> cores = allowed_cores();
  const int available = static_cast<int>(cores.size());
  // A mask smaller than the node was chosen by a launcher or a batch system: it stays.
  const CpuShare share = share_of_cores(available, local_rank, local_size);
  if (local_size > 1) {
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

void flush_denormals_on_all_threads(bool enabled) {
  at::globalContext().setFlushDenormal(enabled);
  const int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1,
                   [enabled](int64_t, int64_t) { at::globalContext().setFlushDenormal(enabled); });
}

}  // namespace sidestream::launch
