// Memory that all ranks of a node map: one segment a rank, zero-filled by its owner, so that its
// pages lie near the owner. Made by all ranks of the node together; each frees its own mapping
// alone.
//
// A file in /dev/shm without a name (where processes cannot see each other's: unlinked as soon as
// everybody has it), rather than an MPI window: it can be aligned to huge pages (a quarter faster
// to reduce), a full /dev/shm is an error instead of a SIGBUS, freeing waits for nobody, and a
// killed process leaves nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <vector>

#include "comm/node_meeting.hpp"

namespace sidestream::comm {

class SharedWindow {
 public:
  // Collective over the ranks of the meeting, every rank with the same size. Throws MemoryError on
  // all ranks when one of them fails, and what the meeting throws.
  SharedWindow(const NodeMeeting& node, std::size_t bytes);
  SharedWindow(SharedWindow&& other) noexcept;
  SharedWindow& operator=(SharedWindow&& other) noexcept;
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;
  ~SharedWindow();

  std::size_t bytes() const noexcept { return bytes_; }
  std::byte* segment(int local_rank) const noexcept {
    return base_ + static_cast<std::size_t>(local_rank) * segment_bytes_;
  }

  // What a segment takes of /dev/shm: whole pages, huge ones where they fit.
  static std::size_t segment_bytes(std::size_t bytes) noexcept;

 private:
  std::size_t bytes_;
  std::size_t segment_bytes_;
  std::size_t mapped_bytes_;
  std::byte* base_ = nullptr;
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

 private:
  int local_rank_;
  mutable std::mutex mutex_;
  std::vector<SharedWindow> windows_;
};

}  // namespace sidestream::comm
