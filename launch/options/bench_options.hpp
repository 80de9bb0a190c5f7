// What `sidestream bench` can be told.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/device/device_choice.hpp"
#include "comm/factory.hpp"
#include "core/base/dtype.hpp"
#include "launch/options/bench_step_options.hpp"

namespace sidestream::launch {

enum class BenchSubject {
  kCeilings,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kOverlap,
  kStep,
};

std::string_view name_of(BenchSubject subject);  // "allreduce"

struct BenchOptions {
  std::optional<BenchSubject> subject = {};           // has to be given
  std::optional<int> threads = {};                    // empty: every core
  double seconds = 1.0;                               // of each measurement
  comm::DeviceWish device = comm::DeviceWish::kAuto;  // under mpirun: whose link
  bool replace = false;                   // also with lower figures than those that are stored
  std::vector<std::size_t> sizes = {};    // of buffers, in bytes; empty: bench_sizes()
  std::optional<core::DType> dtype = {};  // of their elements, and of products; empty: fp32
  comm::Backend backend = comm::Backend::kAuto;
  comm::GpuSharing gpu_sharing = comm::GpuSharing::kRefused;
  std::optional<int> repeats = {};  // of each measurement, instead of `seconds`
  StepBenchOptions step = {};       // of kStep alone, which takes none of the others
};

// Those that were asked for, or those that the subject measures else.
std::vector<std::size_t> bench_sizes(const BenchOptions& options);

// "fp32", as --dtype has it.
std::string_view short_name_of(core::DType dtype);

// Throws ConfigError.
BenchOptions parse_bench_options(const std::vector<std::string>& arguments);

// Once it is known how many ranks there are. Throws ConfigError for what ceilings of one process or
// of a link between ranks have no use for.
void check_ranks_of_bench(const BenchOptions& options, int ranks);

std::string bench_help(int width_columns);

}  // namespace sidestream::launch
