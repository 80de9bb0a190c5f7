#include "comm/shared_window.hpp"

#include <sys/statvfs.h>

#include <cstring>

#include "comm/mpi_check.hpp"

namespace sidestream::comm {
namespace {

class WindowInfo {
 public:
  WindowInfo() {
    check_mpi(MPI_Info_create(&info_), "MPI_Info_create");
    check_mpi(MPI_Info_set(info_, "alloc_shared_noncontig", "true"), "MPI_Info_set");
  }
  ~WindowInfo() { MPI_Info_free(&info_); }
  WindowInfo(const WindowInfo&) = delete;
  WindowInfo& operator=(const WindowInfo&) = delete;
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

// Mappings start on pages, so every rank rounds a segment up to the same place.
std::byte* align_up(void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return reinterpret_cast<std::byte*>((value + kPageBytes - 1) / kPageBytes * kPageBytes);
}

}  // namespace

SharedWindow::SharedWindow(MPI_Comm node, std::size_t bytes) : bytes_(bytes) {
  const WindowInfo info;
  void* base = nullptr;
  MPI_Win raw = MPI_WIN_NULL;
  check_mpi(MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes + kPageBytes), 1, info.get(), node,
                                    &base, &raw),
            "MPI_Win_allocate_shared");
  win_ = UniqueMpiWin(raw);
  check_mpi(MPI_Win_set_errhandler(raw, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  const int ranks = size_of(node);
  for (int peer = 0; peer < ranks; ++peer) {
    MPI_Aint segment_bytes = 0;
    int unit = 0;
    check_mpi(MPI_Win_shared_query(raw, peer, &segment_bytes, &unit, &base),
              "MPI_Win_shared_query");
    segments_.push_back(align_up(base));
  }
  std::memset(segment(rank_of(node)), 0, bytes);
  check_mpi(MPI_Barrier(node), "MPI_Barrier");  // nobody reads a segment that is not filled yet
}

std::size_t shared_memory_free_bytes(const std::filesystem::path& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return 0;
  return static_cast<std::size_t>(status.f_bavail) * status.f_frsize;
}

std::byte* WindowTable::add(SharedWindow window) {
  const std::lock_guard lock(mutex_);
  windows_.push_back(std::move(window));
  return windows_.back().segment(local_rank_);
}

Location WindowTable::locate(const void* data, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const auto begin = reinterpret_cast<std::uintptr_t>(windows_[i].segment(local_rank_));
    if (address >= begin && address + bytes <= begin + windows_[i].bytes()) {
      return {static_cast<std::int32_t>(i), address - begin};
    }
  }
  return {};
}

std::byte* WindowTable::resolve(const Location& location, int local_rank) const {
  const std::lock_guard lock(mutex_);
  return windows_.at(static_cast<std::size_t>(location.window)).segment(local_rank) +
         location.offset_bytes;
}

void WindowTable::abandon() noexcept {
  for (SharedWindow& window : windows_) window.abandon();
}

}  // namespace sidestream::comm
