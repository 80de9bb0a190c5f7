// What an event of a trace is, whatever file it came from.
#pragma once

#include <cstdint>
#include <string_view>

namespace sidestream::trace {

enum class Kind : std::uint8_t {
  kKernel,       // runs on the device; collectives are kernels by their name
  kMemcpy,       // copy on the device's timeline
  kMemset,       //
  kGraph,        // one launch of a CUDA graph whose kernels were not recorded
  kDeviceSync,   // a wait that the device's timeline shows: no work
  kDeviceRange,  // a host range projected onto a stream: no work
  kRuntime,      // call into the CUDA or HIP runtime or driver
  kOperator,     // operator of the framework, on a host thread
  kHostRange,    // named by the user or by Sidestream, on a host thread
  kPython,       // a Python function, with stacks only
  kLock,         // a host thread inside the operating system's locks
  kMemory,       // an allocation or release: an instant
  kUnfinished,   // a host range that had not ended when the recording did
  kOther,
};
inline constexpr int kKindCount = 14;

constexpr std::string_view name_of(Kind kind) {
  constexpr std::string_view names[kKindCount] = {
      "kernel",   "memcpy",     "memset", "graph", "device_sync", "device_range", "runtime",
      "operator", "host_range", "python", "lock",  "memory",      "unfinished",   "other"};
  return names[static_cast<int>(kind)];
}

// Counts as device time: kernels and copies.
constexpr bool is_device_work(Kind kind) { return kind <= Kind::kMemset; }

// Kineto's word for what an event is: today's (kernel, gpu_memcpy, cpu_op, cuda_runtime, ...) and
// the ones of PyTorch 1.8 to 1.11 (Kernel, Memcpy, Operator, Runtime). Sources: libkineto's
// ActivityType.cpp, and traces of these versions.
Kind kind_of_category(std::string_view category);

// NCCL before and after its kernels were renamed (ncclKernel_, ncclDevKernel_), and RCCL.
bool is_collective_kernel(std::string_view name);

}  // namespace sidestream::trace
