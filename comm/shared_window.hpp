// Memory that all ranks of a node map (an MPI-3 shared window): one segment a rank, each
// 4096-aligned and zero-filled by its owner, so that its pages lie near the owner. Made and freed
// by all ranks of the node together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "comm/mpi_handles.hpp"

namespace sidestream::comm {

inline constexpr std::size_t kPageBytes = 4096;

class SharedWindow {
 public:
  // Collective over `node`, every rank with the same size. Throws CollectiveError with MPI's text.
  SharedWindow(MPI_Comm node, std::size_t bytes);

  std::size_t bytes() const noexcept { return bytes_; }
  std::byte* segment(int local_rank) const {
    return segments_[static_cast<std::size_t>(local_rank)];
  }

  // Leaves the window to the end of the process: freeing it would wait for a rank that is gone.
  void abandon() noexcept { win_.release(); }

 private:
  std::size_t bytes_;
  UniqueMpiWin win_;
  std::vector<std::byte*> segments_;
};

// Bytes that the node still has for shared windows.
std::size_t shared_memory_free_bytes(const std::filesystem::path& folder = "/dev/shm");

// A place in a window of this node, the same numbers on every rank. window -1: memory of one rank
// only.
struct Location {
  std::int32_t window = -1;
  std::uint64_t offset_bytes = 0;
};

// The windows of a communicator. Safe to use from the caller's and the progress thread.
class WindowTable {
 public:
  explicit WindowTable(int local_rank) : local_rank_(local_rank) {}

  std::byte* add(SharedWindow window);  // this rank's segment
  Location locate(const void* data, std::size_t bytes) const;
  std::byte* resolve(const Location& location, int local_rank) const;
  void abandon() noexcept;

 private:
  int local_rank_;
  mutable std::mutex mutex_;
  std::vector<SharedWindow> windows_;
};

}  // namespace sidestream::comm
