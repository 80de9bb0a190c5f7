// Per-process settings that decide CPU speed and memory.
#pragma once

#include <optional>

namespace sidestream::launch {

// Gives back what is free now, and keeps what is freed from here on: activations of tens of MB
// otherwise come from mmap, and are faulted in, each step. For just before the first step: what
// set-up freed is not needed again.
void keep_freed_memory();

struct CpuShare {
  int first_core = 0;  // index into the cores that the process may use
  int cores = 1;
};

// Splits the cores of the node evenly: rank local_rank of local_size. With fewer cores than ranks
// cores are shared.
CpuShare share_of_cores(int cores, int local_rank, int local_size);

// Restricts this process to its share when it may use more cores than that, and sets the number of
// intra-op threads: `threads`, or one per core of the share. Returns the number of threads.
int pin_and_set_threads(int local_rank, int local_size, std::optional<int> threads);

// Processors fall back to microcode for denormals, and products of them take many times as long.
// Applies to this thread and to LibTorch's pool.
void flush_denormals_on_all_threads(bool enabled);

}  // namespace sidestream::launch
