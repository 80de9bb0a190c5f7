// Turns MPI's return codes into CollectiveError with the library's own text. Works because every
// communicator of ours gets MPI_ERRORS_RETURN as soon as it exists: MPI's default handler would end
// the process first.
#pragma once

#include <mpi.h>

#include <source_location>
#include <string_view>

namespace sidestream::comm {

// Throws CollectiveError "WHAT: text of the library (FILE:LINE)" unless code is MPI_SUCCESS.
void check_mpi(int code, std::string_view what,
               std::source_location where = std::source_location::current());

}  // namespace sidestream::comm
