// Tables of an export with work on a device: kernels, copies, graph launches.
#pragma once

#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/nsys_strings.hpp"
#include "profiling/trace/senseless_times.hpp"
#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

// Number of rows read; those whose times cannot be are left out and added to `senseless`.
std::uint64_t read_device_tables(const SqliteFile& file, NsysStrings& strings,
                                 NsysProcesses& processes, SenselessTimes& senseless);

}  // namespace sidestream::trace
