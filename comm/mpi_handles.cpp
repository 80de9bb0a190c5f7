#include "comm/mpi_handles.hpp"

#include "comm/mpi_check.hpp"

namespace sidestream::comm {
namespace {

UniqueMpiComm own(MPI_Comm raw) {
  UniqueMpiComm comm(raw);
  if (comm) check_mpi(MPI_Comm_set_errhandler(raw, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

}  // namespace

bool mpi_is_finalized() noexcept {
  int finalized = 0;
  return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
}

void MpiCommTraits::close(MPI_Comm comm) noexcept {
  if (!mpi_is_finalized()) MPI_Comm_free(&comm);
}

UniqueMpiComm duplicate(MPI_Comm parent) {
  MPI_Comm raw = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &raw), "MPI_Comm_dup");
  return own(raw);
}

UniqueMpiComm split(MPI_Comm parent, int color, int key) {
  MPI_Comm raw = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(parent, color, key, &raw), "MPI_Comm_split");
  return own(raw);
}

UniqueMpiComm split_by_node(MPI_Comm parent, int key) {
  MPI_Comm raw = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &raw),
            "MPI_Comm_split_type");
  return own(raw);
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

}  // namespace sidestream::comm
