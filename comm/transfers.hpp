// A batch of nonblocking MPI sends and receives that are waited for together. The buffers belong to
// the batch until done() has said true.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/mpi_handles.hpp"

namespace sidestream::comm {

class Transfers {
 public:
  explicit Transfers(MPI_Comm comm, int tag = 0) : comm_(comm), tag_(tag) {}

  void send(int rank, const std::byte* data, std::size_t bytes);
  void receive(int rank, std::byte* data, std::size_t bytes);
  void add(MPI_Request request);  // any other nonblocking operation

  // Lets MPI progress. Throws CollectiveError when MPI reports an error or a peer sent fewer bytes
  // than were expected, which means that the ranks called the operation with different counts.
  bool done();

 private:
  struct Expected {
    int rank = -1;  // -1: not a receive
    std::size_t bytes = 0;
  };
  void check(const std::vector<MPI_Status>& statuses) const;

  MPI_Comm comm_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<Expected> expected_;
};

}  // namespace sidestream::comm
