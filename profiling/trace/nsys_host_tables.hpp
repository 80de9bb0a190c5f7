// Tables of an export with what host threads did:
// runtime calls, NVTX ranges, locks; and MPI's ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/nsys_strings.hpp"
#include "profiling/trace/senseless_times.hpp"
#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

// Number of rows read; those whose times cannot be are left out and added to `senseless`. To be
// called after the device tables.
std::uint64_t read_host_tables(const SqliteFile& file, NsysStrings& strings,
                               NsysProcesses& processes, SenselessTimes& senseless);

// What keeps a table of these from being read, for people.
std::vector<std::string> missing_host_columns(const SqliteFile& file);

// Process -> rank, from the table MPI_RANKS of newer exports, else from the names that MPI's ranges
// give to threads. Empty: unknown.
std::map<std::uint32_t, int> mpi_ranks_of(const SqliteFile& file, NsysStrings& strings);

}  // namespace sidestream::trace
