// Per-process settings that decide CPU speed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace sidestream::launch {

struct CpuShare {
  int first_core = 0;  // index into the cores that the process may use
  int cores = 1;
};

// A rank among those that must share its cores.
struct Seat {
  int index = 0;
  int count = 1;
};

// Ranks of a node that may use the very same cores share them out; a rank with cores of its own,
// from a launcher or a batch system, keeps them all. `cores_by_rank` says for each rank of the job
// what it may use, in any form that is equal for equal cores.
Seat seat_among(const comm::Topology& topology, const std::vector<std::string>& cores_by_rank);

// Splits cores evenly. With fewer cores than ranks cores are shared.
CpuShare share_of_cores(int cores, const Seat& seat);

enum class Pinning { kOff, kOn };

// Restricts the calling thread, and those that it starts later (the compute threads), to its share
// of `cores`, and sets the number of intra-op threads: `threads`, or one per core of the share.
// Threads that run already keep all cores: those of MPI and of collectives sleep most of the time,
// and wake where a core is idle. kOff: restricts nothing, the number is the same. Returns the
// number of threads.
int pin_and_set_threads(const std::vector<int>& cores, const Seat& seat, std::optional<int> threads,
                        Pinning pinning = Pinning::kOn);
// The same for the ranks of a job. Collective.
int pin_and_set_threads(comm::Communicator& communicator, std::optional<int> threads,
                        Pinning pinning = Pinning::kOn);

// Processors fall back to microcode for denormals, and products of them take many times as long.
// Applies to this thread and to LibTorch's pool.
void flush_denormals_on_all_threads(bool enabled);

}  // namespace sidestream::launch
