// One event between a reader and the store, and what only some kinds of events carry.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "profiling/trace/kind.hpp"
#include "profiling/trace/name_table.hpp"

namespace sidestream::trace {

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;

// What launches of one kernel, or copies of one size, have in common. Told apart by its bytes.
struct LaunchShape {
  std::int64_t stream = 0;
  std::uint64_t bytes = 0;
  std::array<std::uint32_t, 3> grid = {};
  std::array<std::uint32_t, 3> block = {};
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;
  float occupancy_percent = -1;  // estimated by the profiler; below 0: not known
  float blocks_per_sm = -1;
  std::int32_t device = 0;
  std::uint32_t unused = 0;  // leaves no byte without a value
};

// Of kernels, copies and graph launches.
struct DeviceDetail : LaunchShape {
  std::uint64_t correlation = 0;     // the call that launched it; 0: not known
  std::uint32_t collective = kNone;  // row of the collective details
  std::uint32_t shape = kNone;       // the same for equal shapes of one timeline; set by the store
};

// What calls of one operator with the same arguments from the same place have in common.
struct CallTexts {
  NameId shapes = kNoName;  // "Input Dims" as it stands in the file
  NameId types = kNoName;   // "Input type", the same
  NameId values = kNoName;  // "Concrete Inputs", of convolutions only: stride, padding, ...
  NameId stack = kNoName;
  NameId module = kNoName;
};

// Of operators and of host ranges: what the framework said about one call.
struct HostDetail : CallTexts {
  std::int64_t sequence = -1;  // links an operator to its backward
  std::uint32_t collective = kNone;
};

// Of collectives: c10d's arguments on a kernel, or the payload of our own ranges.
struct CollectiveDetail {
  NameId name = kNoName;   // "allreduce"; kNoName: only the kernel's name is known
  NameId group = kNoName;  // name and ranks of the process group
  NameId dtype = kNoName;
  std::int64_t elements_in = -1;
  std::int64_t elements_out = -1;
  std::int64_t bytes = -1;
  std::int64_t bucket = -1;
  std::int64_t sequence = -1;
  std::int32_t group_size = 0;
};

// An allocation (bytes above 0) or a release.
struct MemoryDetail {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated_bytes = -1;  // after it, on that device
  std::int64_t reserved_bytes = -1;
  std::int32_t device = -1;  // below 0: the host's memory
};

// One value of a counter at one time: a sample of the system, or of whoever wrote the trace.
struct CounterReading {
  NameId counter = kNoName;  // "process cpu [%]"
  NameId series = kNoName;   // "running"
  std::int64_t time_ns = 0;
  double value = 0;
};

// Texts point into the reader's buffer: the store copies what it keeps.
struct Event {
  Kind kind = Kind::kOther;
  std::string_view name = {};
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t track = 0;
};

}  // namespace sidestream::trace
