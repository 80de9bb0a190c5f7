// Tables of an export with work on a device: kernels, copies, graph launches.
#pragma once

#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/nsys_strings.hpp"
#include "profiling/trace/senseless_times.hpp"
#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

struct DeviceRows {
  std::uint64_t read = 0;            // those whose times cannot be among them
  std::size_t nameless_kernels = 0;  // different ones, of neither name in StringIds
};

// Rows whose times cannot be are left out and added to `senseless`.
DeviceRows read_device_tables(const SqliteFile& file, NsysStrings& strings,
                              NsysProcesses& processes, SenselessTimes& senseless);

}  // namespace sidestream::trace
