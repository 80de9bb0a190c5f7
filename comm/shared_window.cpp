#include "comm/shared_window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "comm/shared_memory_room.hpp"
#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/host_name.hpp"
#include "core/base/multiple.hpp"

namespace sidestream::comm {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr int kMadviseCollapse =
    25;  // MADV_COLLAPSE of Linux 6.1; older kernels refuse it, and small pages stay

// A name that no other job on this node has, from the node's first rank to all.
std::string agree_on_name(const NodeMeeting& node) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string mine = "/sidestream." + std::to_string(::getpid()) + "." +
                           std::to_string(now.tv_sec) + "." + std::to_string(now.tv_nsec);
  return node.exchange(mine).at(0);
}

// For the message of what could not be had: of all ranks of the node together, before any of them
// has taken some.
std::string text_of(const SharedMemoryRoom& room) {
  constexpr std::size_t kKibibyte = 1024;
  return std::to_string(core::divided_up(room.wanted, kKibibyte)) + " KiB wanted, " +
         std::to_string(room.free / kKibibyte) + " KiB free on " + core::host_name();
}

// What was tried, and what to do where it fails.
struct Attempt {
  const char* what;
  const char* way_out;
};
constexpr const char* kMoreSpace = "In a container, start it with a larger --shm-size";
constexpr Attempt kCreate{"create a file", kMoreSpace};
constexpr Attempt kOpen{
    "open a file of the node's first rank",
    "The ranks of a host need one /dev/shm: start their containers with --ipc=host, "
    "or take --shared-memory off"};
constexpr Attempt kReserve{"reserve memory", kMoreSpace};
constexpr Attempt kMap{"map memory",
                       "Processes may have too little room for addresses (ulimit -v): raise that, "
                       "or take --shared-memory off"};

// All ranks go on, or all throw: the largest error number of any rank decides, and its node's room
// is told. Also a barrier.
void require_everywhere(const NodeMeeting& node, int error_number, const Attempt& attempt,
                        const SharedMemoryRoom& room) {
  int largest = 0;
  std::string room_text;
  const std::string mine = std::to_string(error_number) + " " + text_of(room);
  for (const std::string& theirs : node.exchange_to_decide(mine)) {
    const int number = std::stoi(theirs);
    if (number <= largest) continue;
    largest = number;
    room_text = theirs.substr(theirs.find(' ') + 1);
  }
  if (largest == 0) return;
  throw core::MemoryError("shared memory in /dev/shm: cannot " + std::string(attempt.what) + ": " +
                          std::generic_category().message(largest) + " (" + room_text + "). " +
                          attempt.way_out);
}

// How the first rank's file without a name can be opened by others, and known to be the right one.
struct NamelessFile {
  std::string path = "-";
  unsigned long long device = 0;
  unsigned long long inode = 0;

  static NamelessFile of(int fd) {
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) return {};
    return {.path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd),
            .device = status.st_dev,
            .inode = status.st_ino};
  }
  static NamelessFile from(const std::string& text) {
    NamelessFile file;
    std::istringstream(text) >> file.path >> file.device >> file.inode;
    return file;
  }
  std::string text() const {
    return path + " " + std::to_string(device) + " " + std::to_string(inode);
  }
  // Empty where this process may not, or where that path means another file.
  core::UniqueFd open() const {
    core::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    const NamelessFile found = of(fd.get());
    if (fd && found.device == device && found.inode == inode) return fd;
    return {};
  }
};

// A file that no folder lists, so that nothing can stay behind, whenever a process is killed: the
// first rank makes it, the others open it through that process. Empty on all ranks where one
// cannot, as in containers of their own; of all nodes that meet at once, so that none goes on to
// meetings that the others do not come to.
core::UniqueFd open_nameless(const NodeMeeting& node, std::size_t bytes) {
  core::UniqueFd fd;
  if (node.rank == 0) {
    fd.reset(::open("/dev/shm", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600));
    if (fd && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) fd.reset();
  }
  const std::string file = node.exchange(NamelessFile::of(fd.get()).text()).at(0);
  if (node.rank != 0) fd = NamelessFile::from(file).open();
  for (const std::string& theirs : node.exchange_to_decide(fd ? "open" : "closed")) {
    if (theirs != "open") return {};
  }
  return fd;
}

// Removes the file's name, whatever happens: everybody who has it open keeps it.
class NameGuard {
 public:
  explicit NameGuard(std::string name) : name_(std::move(name)) {}
  NameGuard(const NameGuard&) = delete;
  NameGuard& operator=(const NameGuard&) = delete;
  ~NameGuard() { ::shm_unlink(name_.c_str()); }

 private:
  std::string name_;
};

// The first rank creates it, then the others open it, and its name goes.
core::UniqueFd open_named(const NodeMeeting& node, const SharedMemoryRoom& room) {
  const std::string name = agree_on_name(node);
  core::UniqueFd fd;
  int error_number = 0;
  std::optional<NameGuard> guard;
  if (node.rank == 0) {
    fd.reset(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd) guard.emplace(name);
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(room.wanted)) != 0) error_number = errno;
  }
  require_everywhere(node, error_number, kCreate, room);
  if (node.rank != 0) {
    fd.reset(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600));
    if (!fd) error_number = errno;
  }
  require_everywhere(node, error_number, kOpen, room);
  return fd;
}

core::UniqueFd open_shared(const NodeMeeting& node, const SharedMemoryRoom& room) {
  core::UniqueFd fd = open_nameless(node, room.wanted);
  return fd ? std::move(fd) : open_named(node, room);
}

// Starts on a huge page, or the kernel could not use one. Null on failure.
std::byte* map_aligned(int fd, std::size_t bytes) {
  const std::size_t reserved_bytes = bytes + kHugePageBytes;
  void* reserved = ::mmap(nullptr, reserved_bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(reserved);
  const std::uintptr_t aligned = core::rounded_up(begin, kHugePageBytes);
  const std::uintptr_t end = begin + reserved_bytes;
  if (aligned > begin) ::munmap(reserved, aligned - begin);
  if (end > aligned + bytes)
    ::munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  void* mapped = ::mmap(reinterpret_cast<void*>(aligned), bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) {
    ::munmap(reinterpret_cast<void*>(aligned), bytes);
    return nullptr;
  }
  return static_cast<std::byte*>(mapped);
}

// Error number, or 0. A signal may come at any moment.
int reserve(int fd, off_t first, off_t bytes) {
  int error_number = EINTR;
  while (error_number == EINTR) error_number = ::posix_fallocate(fd, first, bytes);
  return error_number;
}

}  // namespace

std::size_t SharedWindow::segment_bytes(std::size_t bytes) noexcept {
  return core::rounded_up(bytes == 0 ? 1 : bytes,
                          bytes < kHugePageBytes ? kPageBytes : kHugePageBytes);
}

SharedWindow::SharedWindow(const NodeMeeting& node, std::size_t bytes)
    : bytes_(bytes),
      segment_bytes_(segment_bytes(bytes)),
      mapped_bytes_(segment_bytes_ * static_cast<std::size_t>(node.size)) {
  const SharedMemoryRoom room{.wanted = mapped_bytes_, .free = shared_memory_free_bytes()};
  const core::UniqueFd fd = open_shared(node, room);
  const auto mine = static_cast<std::size_t>(node.rank) * segment_bytes_;
  // By its owner, so that the pages are near it; ENOSPC here instead of SIGBUS later. Fresh pages
  // are zero.
  require_everywhere(
      node, reserve(fd.get(), static_cast<off_t>(mine), static_cast<off_t>(segment_bytes_)),
      kReserve, room);
  base_ = map_aligned(fd.get(), mapped_bytes_);
  const int error_number = base_ == nullptr ? errno : 0;
  const bool huge = node.huge_pages && segment_bytes_ >= kHugePageBytes;
  if (base_ != nullptr && huge) {
    ::madvise(base_ + mine, segment_bytes_,
              kMadviseCollapse);  // a wish: small pages are only slower
  }
  try {
    require_everywhere(node, error_number, kMap, room);
  } catch (...) {
    if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
    throw;
  }
  if (huge) ::madvise(base_, mapped_bytes_, kMadviseCollapse);  // map the peers' alike
}

SharedWindow::SharedWindow(SharedWindow&& other) noexcept
    : bytes_(other.bytes_),
      segment_bytes_(other.segment_bytes_),
      mapped_bytes_(other.mapped_bytes_),
      base_(std::exchange(other.base_, nullptr)) {}

SharedWindow& SharedWindow::operator=(SharedWindow&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(segment_bytes_, other.segment_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(base_, other.base_);
  return *this;
}

SharedWindow::~SharedWindow() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
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

}  // namespace sidestream::comm
