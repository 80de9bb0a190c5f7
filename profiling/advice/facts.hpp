// What the rules look at: figures of a mean step of one rank, gathered once. What a trace or a run
// directory does not have is empty, so that a rule can tell "looked and found nothing" from "could
// not look".
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"

namespace sidestream::advice {

// Peak rates that were measured, for rooflines and precisions.
struct Ceilings {
  std::map<std::string, double> flops_per_s = {};  // by "fp32", "bf16", ...
  double memory_bytes_per_s = 0;
  double host_to_device_bytes_per_s = 0;  // 0: not measured
  double device_to_host_bytes_per_s = 0;
  double link_bytes_per_s = 0;  // bus bandwidth of an all-reduce between as many ranks
  std::string source = {};      // "measured on PROCESSOR", "datasheet of DEVICE, not measured"
  std::set<std::string> of_datasheet = {};  // figures that were not measured: "fp32", "memory"
};

// Of one rank and one step, nanoseconds.
struct StepFacts {
  std::int64_t steps = 0;  // that the means are over
  double window_ns = 0;
  double compute_ns = 0;
  double overlapped_comm_ns = 0;
  double exposed_comm_ns = 0;
  double exposed_copies_ns = 0;
  double idle_ns = 0;
  double idle_data_ns = 0;
  double idle_host_ns = 0;
  double idle_sync_ns = 0;
  double idle_after_sync_ns = 0;  // of it
  double idle_comm_ns = 0;
  double idle_lock_ns = 0;
};

struct KernelFacts {
  double per_step = 0;  // kernels that are no collectives
  double mean_ns = 0;
  double matrix_ns = 0;         // of a step: in kernels of matrix products and convolutions
  double low_occupancy_ns = 0;  // of a step: in kernels below kLowOccupancy that are no products
  std::string low_occupancy_kernel = {};
  double low_occupancy_percent = 0;                  // of that one
  std::string low_occupancy_limiter = {};            // of that one
  std::map<std::string, std::string> limiters = {};  // of each kernel below: "registers", ...
  double short_ns = 0;        // of a step: in kernels below kShortKernelNs that are no products
  double short_per_step = 0;  // how many
  double layout_ns = 0;       // of a step: turning channels-first tensors round
  double convolution_ns = 0;  // of a step
  bool one_stream = false;    // collectives on the stream of the compute
};
// 80 for 8.0.
inline int compute_capability(const trace::DeviceProperties& device) {
  return device.compute_major * 10 + device.compute_minor;
}
inline constexpr double kLowOccupancyPercent = 25;
inline constexpr double kShortKernelNs = 10'000;

// Of operators that are matrix products, with shapes.
struct ProductFacts {
  double flops = 0;            // of a step of one rank
  double unaligned_flops = 0;  // some extent is no multiple of 8
  std::string unaligned_shape = {};
  double off_line_flops = 0;  // multiples of 8, but some extent is not whole lines of 128 bytes
  std::string off_line_shape = {};
  double fp32_flops = 0;
  double host_ns = 0;  // duration of the operators: their compute on host ranks
};

struct OptimizerFacts {
  double launches = 0;   // kernels started, or operators called, in the optimizer's range of a step
  double time_ns = 0;    // of the range, on the host
  double device_ns = 0;  // of the kernels started in it, but collectives
  bool fused_update = false;  // an operator such as aten::_fused_adamw_ is among them
  double passes_ns = 0;       // sums and products over parameters, each a pass of its own
};

// Operators that keep the host of a device busy for long and start nothing there.
struct HeavyOperatorFacts {
  double time_ns = 0;  // of a step
  std::string longest = {};
  double longest_ns = 0;  // one call
};
inline constexpr double kHeavyOperatorNs = 1'000'000;

// Calls of aten::copy_, of a step of one rank.
struct LayoutCopyFacts {
  double copies_ns = 0;
  double before_products_ns = 0;  // of them, those that layout_copies.hpp is about
};

// Checkpoints, of a mean step over all recorded ones, tagged ones too.
struct SaveFacts {
  double inside_ns = 0;   // of the steps
  double between_ns = 0;  // from the end of a step to the start of the next one
  double beside_ns = 0;   // written while the steps go on, on processors that compute
  double window_ns = 0;   // of the step

  double share() const { return of_whole(inside_ns + between_ns); }
  // Of a processor that computes a thread that writes beside it takes half at most: the scheduler
  // is fair to both.
  double share_with_beside() const {
    return std::min(1.0, of_whole(inside_ns + between_ns + beside_ns / 2));
  }

 private:
  double of_whole(double time_ns) const {
    const double whole = window_ns + between_ns;
    return whole > 0 ? time_ns / whole : 0;
  }
};

struct SyncFacts {
  double item_calls = 0;  // aten::item and its like, a step
  double calls = 0;       // calls that wait for the device, a step
};

struct CopyFacts {
  double pageable_ns = 0;  // of a step
  double pageable_bytes = 0;
  double default_stream_ns = 0;  // between host and device, pinned, on the stream of the kernels
};

// Bus bytes over the time of the transfers.
struct BusUse {
  double bytes = 0;
  double transfer_ns = 0;
  std::optional<double> bytes_per_s() const {
    return transfer_ns > 0 ? std::optional(bytes / transfer_ns * 1e9) : std::nullopt;
  }
};

struct CollectiveFacts {
  double per_step = 0;
  double bytes = 0;             // of a step, of those with a size
  double largest_bytes = 0;     // one collective
  double buckets_per_step = 0;  // of at least kBucketBytes: what is below carries no gradients
  double small_per_step = 0;    // below kSmallCollectiveBytes
  double small_exposed_ns = 0;
  double all_reduce_bytes = 0;  // of a step of one rank
  double all_reduce_exposed_ns = 0;
  double reduce_scatter_bytes = 0;
  double gathered_bytes = 0;                       // what all-gathers leave on each rank
  std::optional<double> bus_bytes_per_s = {};      // weighted by the time of the transfers
  std::map<std::string, BusUse> bus_of_name = {};  // of every collective of the traces
  std::optional<double> transfer_ns = {};          // of a step, without waiting for other ranks
  double unmatched_ns = 0;  // of a step, beside it: of which nobody knows what was waiting

  // Of one collective; of all together for a kernel of NCCL, whose name is another.
  std::optional<double> bus_of(const std::string& name) const {
    const auto found = bus_of_name.find(name);
    return found == bus_of_name.end() ? bus_bytes_per_s : found->second.bytes_per_s();
  }
};
// CUPTI's number of the legacy default stream, on which nothing runs beside anything.
inline constexpr std::int64_t kDefaultStream = 7;
inline constexpr double kSmallCollectiveBytes = 1e6;
inline constexpr double kBucketBytes = 1024;

// An event in the timeline: the longest of what a finding is about.
enum class PlaceKind {
  kNone,
  kInput,
  kCollective,
  kSmallCollective,
  kStraggler,  // the phase that the slow rank is slow in, on that rank
  kOptimizer,
  kCheckpoint,
  kPageableCopy,
  kDefaultStreamCopy,
  kItem,  // a call of item()
  kSync,
  kSmallKernel,
  kLowOccupancy,
  kLayoutKernel,
  kConvolution,
  kProduct,
  kUnaligned,  // the product of most FLOPs
  kOffLine,
  kLaunchGap,  // the device idle, and the host neither waiting nor reading
  kHostOperator,
  kFusible,
  kStep,  // of what holds for all of it: the longest one
  kCount
};
inline constexpr std::size_t kPlaceKinds = static_cast<std::size_t>(PlaceKind::kCount);

struct Place {
  int rank = 0;
  std::optional<std::int64_t> stream = {};
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double weight = 0;  // that it was chosen by: its time, or FLOPs
};

struct Places {
  std::map<PlaceKind, Place> of_all = {};
  std::map<int, std::map<PlaceKind, Place>> of_rank = {};
  std::int64_t first_step_ns = 0;  // when the first step of any rank began

  // Of this rank where it has one, else of all. Null: nothing like that is in the timeline.
  const Place* find(PlaceKind kind, int rank) const;
};

// The folder that the run read its data from, where it is still there.
struct DataFacts {
  double files = 0;
  double mean_bytes = 0;
};

// What the traces hold at all: where it is missing a rule could not look, whatever its figures say.
struct TraceContents {
  bool every_rank = false;           // of the run
  bool matched_collectives = false;  // the same one on several ranks
  bool operators = false;
  bool runtime_calls = false;
  bool input_ranges = false;    // of reading batches
  bool occupancies = false;     // of kernels
  bool without_device = false;  // of a host that may have left the work to a device
  bool hidden_kernels = false;  // in CUDA graphs
};

// What wrote the traces: it decides what could be recorded beside.
enum class Recorder { kKineto, kNsys };

struct Facts {
  int world_size = 0;
  Recorder recorder = Recorder::kKineto;
  TraceContents traces = {};
  bool on_device = false;
  bool foreign = false;  // another program wrote the traces
  std::optional<StepFacts> step = {};
  std::optional<int> rank = {};                 // that the step is of; empty: the mean of all
  std::map<int, StepFacts> step_of_rank = {};   // empty where there are no steps
  std::map<std::string, double> phase_ns = {};  // a step of one rank; empty: no phases in the trace
  std::optional<SaveFacts> saves = {};
  std::optional<KernelFacts> kernels = {};
  std::optional<ProductFacts> products = {};
  std::optional<double> fusible_ns = {};  // of a step: in operators that is_fusible() names
  std::optional<OptimizerFacts> optimizer = {};
  std::optional<HeavyOperatorFacts> heavy_operators = {};  // empty: no host operators
  std::optional<LayoutCopyFacts> layout_copies = {};       // empty: no operators
  std::optional<SyncFacts> syncs = {};
  std::optional<CopyFacts> copies = {};
  std::optional<CollectiveFacts> collectives = {};
  std::optional<DataFacts> data = {};
  std::optional<statistics::Straggler> straggler = {};
  std::optional<double> gpu_utilisation = {};
  std::optional<double> tensor_core_share = {};
  std::optional<double> mfu = {};  // of a step
  // A recorded step over one without the profiler, less 1.
  std::optional<double> profiler_cost = {};
  std::map<int, double> unprofiled_data_wait = {};  // by rank: share of a step without the profiler
  // Of whichever rank waits longest for data in a step, its mean over the steps: the others wait
  // for that rank in their collectives.
  double longest_data_wait_ns = 0;
  std::optional<double> memory_share = {};     // peak over what the device has
  std::optional<int> compute_capability = {};  // 80 for 8.0
  int cuda_driver = 0;                         // 12090 for 12.9; 0: not said
  int cuda_runtime = 0;
  analysis::SystemUse system = {};
  std::map<std::string, std::string> config = {};  // of the run directory; empty: none
  std::map<std::string, std::string> environment = {};
  std::optional<Ceilings> ceilings = {};
  Places places = {};

  // Of the step; 0 without steps.
  double share_of(double time_ns) const {
    return step && step->window_ns > 0 ? time_ns / step->window_ns : 0;
  }
  // Time over a recorded step as one without the profiler has it: that is shorter.
  double of_recorded_step(double unprofiled_share) const {
    return unprofiled_share / (1 + profiler_cost.value_or(0));
  }
  // With the mean step of one rank; all else stays what it is of all ranks: for rules whose figures
  // are of the step alone.
  Facts of_rank(int rank) const;
  // Computing threads of all ranks of a node over its cores; 0 where the run does not say.
  double threads_per_core() const;
  // Of run.json; nothing where it does not say.
  std::optional<double> environment_number(const std::string& name) const;
  std::optional<std::string> setting(const std::string& name) const {
    const auto found = config.find(name);
    return found == config.end() ? std::nullopt : std::optional(found->second);
  }
};

Facts gather_facts(const analysis::Analysis& all, int threads = 1);

}  // namespace sidestream::advice
