#include "comm/shared_memory_room.hpp"

#include <algorithm>
#include <sstream>

#include "comm/mpi_check.hpp"
#include "comm/mpi_handles.hpp"

namespace sidestream::comm {

std::string SharedMemoryRoom::text() const {
  return std::to_string(wanted) + " " + std::to_string(free);
}

SharedMemoryRoom SharedMemoryRoom::from(const std::string& text) {
  SharedMemoryRoom room;
  std::istringstream(text) >> room.wanted >> room.free;
  return room;
}

std::vector<SharedMemoryRoom> rooms_of_all(MPI_Comm job, const SharedMemoryRoom& mine) {
  constexpr int kBytes = sizeof(SharedMemoryRoom);
  std::vector<SharedMemoryRoom> all(static_cast<std::size_t>(size_of(job)));
  check_mpi(MPI_Allgather(&mine, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, job),
            "MPI_Allgather in setup");
  return all;
}

std::optional<std::size_t> first_without_room(const std::vector<SharedMemoryRoom>& rooms) {
  const auto found = std::find_if(rooms.begin(), rooms.end(),
                                  [](const SharedMemoryRoom& room) { return !room.suffices(); });
  if (found == rooms.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rooms.begin());
}

std::string space_warning(const SharedMemoryRoom& room, const std::string& host) {
  return "shared memory of " + host + ": " + std::to_string(room.wanted >> 20) +
         " MiB wanted, /dev/shm has " + std::to_string(room.free >> 20) +
         " MiB; going on more slowly without it. In a container, start it with a larger --shm-size";
}

}  // namespace sidestream::comm
