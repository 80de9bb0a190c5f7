// Tables of an export with what host threads did:
// runtime calls, NVTX ranges, locks; and MPI's ranks.
#pragma once

#include <cstdint>
#include <map>

#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/nsys_strings.hpp"
#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

// Number of rows read. To be called after the device tables.
std::uint64_t read_host_tables(const SqliteFile& file, NsysStrings& strings,
                               NsysProcesses& processes);

// Process -> rank, from the names that MPI's ranges give
// to threads, or from a table of its own. Empty: unknown.
std::map<std::uint32_t, int> mpi_ranks_of(const SqliteFile& file, NsysStrings& strings);

}  // namespace sidestream::trace
