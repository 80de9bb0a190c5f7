// What this machine can do at most, as measured: the denominators of MFU and of rooflines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/ceilings/collective_rate.hpp"
#include "launch/ceilings/nccl_paths.hpp"

namespace sidestream::comm {
class Communicator;
}

namespace sidestream::launch {

// Bus bandwidth of an all-reduce between ranks of this machine, 2 (n - 1) / n x bytes / time; by
// number of ranks.
using LinkRates = std::map<int, double>;

// Of the first GPU. Empty: there is none.
struct DeviceCeilings {
  std::string name = {};
  std::map<std::string, double> flops_per_s = {};  // matrix products: "fp32", "tf32", ...
  double memory_bytes_per_s = 0;                   // read + write of a copy on the device
  double host_to_device_bytes_per_s = 0;           // from pinned memory
  double device_to_host_bytes_per_s = 0;
  LinkRates link_bytes_per_s = {};  // between GPUs
  GatherPaths gather_paths = {};    // the same by `bench allgather`
};

struct Ceilings {
  std::string processor;        // model name of /proc/cpuinfo
  int cores = 0;                // cores used by the measurement
  double fp32_flops_per_s = 0;  // matrix products
  double bf16_flops_per_s = 0;
  double memory_bytes_per_s = 0;  // read + write of what is larger than the caches
  double seconds = 0;             // that each figure was measured for; 0: not known
  std::optional<DeviceCeilings> device = {};
  LinkRates link_bytes_per_s = {};  // between host ranks
};

// Best of repeated products, copies and updates, `seconds` for each figure in all, on all intra-op
// threads of this process.
Ceilings measure_processor(double seconds);

// Of a copy from one block of `bytes` to another, on all intra-op threads; read + written.
double measure_copy(double seconds, std::int64_t bytes);

// Of the first GPU of this machine, as its driver says it; empty: there is none.
std::string gpu_name();

// Of the first GPU. Throws c10::Error where there is none.
DeviceCeilings measure_device(double seconds);

// Collective. The fastest all-reduces of 64 MB; `seconds` is theirs.
CollectiveRate measure_link(comm::Communicator& communicator, const RepeatRule& rule);

// Where measurements of this user are kept: $XDG_CACHE_HOME/sidestream/ceilings.json, without that
// in the .cache of $HOME, or of the home in the list of users. Machines that share a home have an
// entry each, by processor, and in it one for each GPU, by its name.
std::filesystem::path ceilings_file();

// A measurement beside one that is stored. A ceiling is what was reached once, so of the same cores
// the higher figure stays; a measurement on fewer cores changes nothing. `remarks` says what was
// kept.
struct KeptCeilings {
  Ceilings kept;
  std::vector<std::string> remarks = {};
};
KeptCeilings keep_better(const std::optional<Ceilings>& stored, const Ceilings& fresh);

// Replaces the entries of this processor and of this GPU, leaves the others. One process at a time:
// it holds a lock on FILE.lock.
void save_ceilings(const Ceilings& ceilings, const std::filesystem::path& file);

// The same with what comes of load_ceilings(), under one lock: figures that another process stores
// meanwhile stay. What `change` makes of the stored measurement is saved; nothing when it is empty.
using ChangeOfCeilings =
    std::function<std::optional<Ceilings>(const std::optional<Ceilings>& stored)>;
void update_ceilings(const std::filesystem::path& file, const std::string& gpu,
                     const ChangeOfCeilings& change);

// The stored measurement of this processor, and of the GPU of that name where there is one; empty
// when there is none or when the file cannot be read.
std::optional<Ceilings> load_ceilings(const std::filesystem::path& file,
                                      const std::string& gpu = "");

std::string processor_name();

}  // namespace sidestream::launch
