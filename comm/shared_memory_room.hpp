// How much shared memory the nodes of a job have for what its ranks want of it. All ranks decide
// alike, and where one node has too little it is that one that people are told of.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::comm {

// Of /dev/shm of a rank's node, in bytes.
struct SharedMemoryRoom {
  std::size_t wanted = 0;
  std::size_t free = 0;

  bool suffices() const noexcept { return free >= wanted; }
  std::string text() const;  // as from() reads it
  static SharedMemoryRoom from(const std::string& text);
};

// Of every rank, in the order of the ranks. Collective over `job`.
std::vector<SharedMemoryRoom> rooms_of_all(MPI_Comm job, const SharedMemoryRoom& mine);

// The first rank that has too little.
std::optional<std::size_t> first_without_room(const std::vector<SharedMemoryRoom>& rooms);

std::string space_warning(const SharedMemoryRoom& room, const std::string& host);

}  // namespace sidestream::comm
