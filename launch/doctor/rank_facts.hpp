// What one rank has read about itself and its machine. Plain values, so that a check can be tried
// on a machine that is made up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/device/device_choice.hpp"
#include "comm/machine.hpp"
#include "comm/mpi_library.hpp"
#include "core/base/cgroup_limits.hpp"
#include "profiling/record/nvlinks.hpp"

namespace sidestream::launch::doctor {

using core::kUnlimited;

struct ProgramFacts {
  std::string version = {};
  std::string sha256 = {};       // of the executable
  std::string built_cuda = {};   // version of the toolkit; empty: built without
  std::string built_torch = {};  // of its headers
  std::string torch = {};        // of the library that is loaded
};

struct NcclFacts {
  std::string built = {};    // "2.28.9"; empty: there is none to load
  std::string loaded = {};   // likewise
  std::string problem = {};  // why it cannot be used
};

struct ProcessorFacts {
  std::string name = {};
  std::string capability = {};  // of LibTorch's kernels: "AVX512"
  comm::Machine machine = {};
  std::vector<int> allowed = {};  // that this rank may run on
  double quota = 0;               // processors' worth of time of its control group; 0: no quota
  double load = 0;                // processes that wanted to run in the last minute
  std::string governor = {};      // of the clock rate; empty: the kernel does not say
};

struct MemoryFacts {
  std::int64_t available_bytes = 0;       // without what would have to be swapped out
  std::int64_t limit_bytes = kUnlimited;  // of the control group
  std::int64_t limit_used_bytes = 0;      // of that limit
  std::int64_t shared_free_bytes = 0;     // in /dev/shm
  std::string huge_pages = {};            // "always", "madvise", "never"; empty: not known
  std::string huge_pages_of_files = {};   // of /dev/shm: the same, and "advise"
};

struct LimitFacts {
  std::int64_t open_files = kUnlimited;
  std::int64_t locked_bytes = kUnlimited;
  std::int64_t file_bytes = kUnlimited;
  std::int64_t address_bytes = kUnlimited;
  std::int64_t tasks = kUnlimited;  // threads and processes that may still be started
};

struct GpuFacts {
  comm::DeviceFinding device = {.problem = "nobody has looked for one"};
  int on_bus = 0;              // NVIDIA's devices on the PCI bus that compute
  std::string driver = {};     // version of the kernel module; empty: it is not loaded
  std::string held_down = {};  // why the clocks are below what they could be; empty: they are not
  record::NvLinks links = {};
};

struct NetworkFacts {
  std::string fastest = {};  // name of the fastest link; empty: none says how fast it is
  double bytes_per_s = 0;
  bool remote_memory = false;  // an InfiniBand or RoCE adapter is there
};

struct StorageFacts {
  bool probed = false;          // by the first rank of each host
  std::string folder = {};      // that was written to
  bool answered = true;         // else nothing of what follows is known
  std::string filesystem = {};  // "ext4", "tmpfs"
  bool sees_first = true;       // what the first rank has just written there
  std::int64_t free_bytes = 0;
  std::string problem = {};  // what could not be done, with the system's words
  double fsync_s = 0;        // median, of a small file
  double bytes_per_s = 0;    // of a large one, its fsync included
};

struct RankFacts {
  int host = 0;  // index, in order of the lowest ranks: names of hosts need not be different
  ProgramFacts program = {};
  comm::MpiLibrary mpi = {};
  bool mpirun = false;  // one is in PATH
  NcclFacts nccl = {};
  ProcessorFacts processor = {};
  std::string clock_source = {};
  MemoryFacts memory = {};
  LimitFacts limits = {};
  GpuFacts gpu = {};
  NetworkFacts network = {};
  StorageFacts storage = {};
  double memory_bytes_per_s = 0;  // of a copy, while all ranks copy; 0: not measured
  bool stop = false;              // somebody asked this rank to stop

  // For the exchange among ranks. Throws core::Error for a text that is none.
  std::string to_text() const;
  static RankFacts from_text(const std::string& text);
};

}  // namespace sidestream::launch::doctor
