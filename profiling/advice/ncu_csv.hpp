// Counters of Nsight Compute, from its CSV: `ncu --csv --page raw` (a row a launch, a column a
// metric, units in the second row) and `ncu --csv` (a row a metric). Lines before the header, such
// as
// ==PROF==, are passed over. Checked against the formats that the Nsight Compute CLI documents.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::advice {

// One launch. Metrics that ncu could not read are not there: it writes "n/a" or nothing.
struct NcuLaunch {
  std::string kernel;
  std::map<std::string, double>
      metrics;  // in base units: seconds, bytes, per second; percent as it is
};

// Throws core::DataError (file, byte, expected, found) for a file without a header or launches, for
// a row that was cut, for launches without a single metric that is used, and with what to do about
// counters that were refused (ERR_NVGPUCTRPERM).
std::vector<NcuLaunch> read_ncu_csv(const std::filesystem::path& file);

// The counters of one kernel that an explanation uses; means over its launches. Empty: not
// measured.
struct NcuCounters {
  int launches = 0;
  std::optional<double> duration_s = {};
  std::optional<double> flops =
      {};  // executed by the CUDA cores; those of Tensor Cores are not in it
  std::optional<double> dram_bytes = {};
  std::optional<double> compute_percent = {};  // of the peak of the SMs
  std::optional<double> memory_percent = {};   // of the peak of the DRAM
  std::optional<double> tensor_percent = {};   // of the Tensor pipes
  std::optional<double> occupancy_percent = {};
  std::optional<double> l2_hit_percent = {};
  std::optional<double> sectors_per_request = {};
  std::optional<double> bank_conflicts = {};
  std::string occupancy_limiter = {};  // "registers", "shared memory", "blocks", "warps"
  std::string top_stall = {};          // "long scoreboard"
};

// By kernel_key(): instances of one template are different kernels.
using NcuByKernel = std::map<std::string, NcuCounters>;
NcuByKernel counters_by_kernel(const std::vector<NcuLaunch>& launches);
// Of a kernel by its name in a trace; a CSV with bare names of functions fits every instance.
std::optional<NcuCounters> counters_for(const NcuByKernel& counters, const std::string& kernel);

// Scope, function and arguments of the template, without what demanglers write differently:
// "void a::foo<(int)4, float >(float*)" and "void a::foo<4, float>(T2)" are "a::foo<4,float>".
std::string kernel_key(const std::string& kernel);

// "void at::native::foo<float>(int)" -> "foo": what --kernel-name-base function matches.
std::string function_of(const std::string& kernel);

// The metrics that the counters above need, separated by commas: for the command line of ncu.
std::string ncu_metrics();

}  // namespace sidestream::advice
