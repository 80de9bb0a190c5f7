// Owners of MPI communicators. Closing tolerates an MPI that has already been
// finalised.
#pragma once

#include <mpi.h>

#include "core/base/unique_handle.hpp"

namespace sidestream::comm {

bool mpi_is_finalized() noexcept;

struct MpiCommTraits {
  using Value = MPI_Comm;
  static inline const MPI_Comm null = MPI_COMM_NULL;
  static void close(MPI_Comm comm) noexcept;
};
using UniqueMpiComm = core::UniqueHandle<MpiCommTraits>;

// New communicators with MPI_ERRORS_RETURN set at once. All ranks of `parent` call them.
UniqueMpiComm duplicate(MPI_Comm parent);
UniqueMpiComm split(MPI_Comm parent, int color, int key);
UniqueMpiComm split_by_node(MPI_Comm parent, int key);

int rank_of(MPI_Comm comm);
int size_of(MPI_Comm comm);

}  // namespace sidestream::comm
