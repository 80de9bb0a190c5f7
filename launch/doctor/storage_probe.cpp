#include "launch/doctor/storage_probe.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch::doctor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

fs::path nearest_existing(const fs::path& folder) {
  std::error_code ignored;
  fs::path there = fs::absolute(folder, ignored).lexically_normal();
  if (!there.has_filename()) there = there.parent_path();  // "/tmp/." and "/tmp/" are /tmp
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  return there;
}

// Where the file system has no files without a name, one that loses it at once.
core::UniqueFd open_nameless(const fs::path& folder) {
  core::UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  const fs::path name = folder / (".sidestream-doctor." + std::to_string(::getpid()));
  fd.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd) ::unlink(name.c_str());
  return fd;
}

void sync(int fd, const fs::path& folder) {
  if (::fsync(fd) != 0) core::fail_to_write("cannot sync a file in", folder);
}

double median_sync_s(int fd, const fs::path& folder, const ProbeSize& size,
                     const std::function<bool()>& stop) {
  std::vector<double> times;
  while (times.size() < static_cast<std::size_t>(size.syncs) && !stop()) {
    const auto begin = Clock::now();
    core::write_all(fd, "sidestream doctor", folder);
    sync(fd, folder);
    times.push_back(seconds_since(begin));
  }
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

double write_bytes_per_s(int fd, const fs::path& folder, const ProbeSize& size,
                         const std::function<bool()>& stop) {
  const std::string piece(std::size_t{1} << 20, 'x');
  std::size_t written = 0;
  const auto begin = Clock::now();
  for (; written < size.bytes && !stop(); written += piece.size())
    core::write_all(fd, piece, folder);
  sync(fd, folder);
  return static_cast<double>(written) / seconds_since(begin);
}

// Numbers of the kernel's magic.h; others are not worth a word.
std::string filesystem_name(const fs::path& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return "";
  switch (static_cast<unsigned long>(status.f_type)) {
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794C7630:
      return "overlay";
    case 0x6969:
      return "nfs";
    case 0x0BD00BD0:
      return "lustre";
    case 0x2FC12FC1:
      return "zfs";
    default:
      return "another file system";
  }
}

void describe(const fs::path& folder, StorageFacts& facts) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) == 0)
    facts.free_bytes =
        static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
  facts.filesystem = filesystem_name(folder);
}

}  // namespace

StorageFacts probe_storage(const fs::path& folder, const ProbeSize& size,
                           const std::function<bool()>& stop) {
  const fs::path there = nearest_existing(folder);
  StorageFacts facts{.probed = true, .folder = there.string()};
  describe(there, facts);
  try {
    const core::UniqueFd fd = open_nameless(there);
    if (!fd) core::fail_to_write("cannot create a file in", there);
    facts.fsync_s = median_sync_s(fd.get(), there, size, stop);
    facts.bytes_per_s = write_bytes_per_s(fd.get(), there, size, stop);
    core::sync_folder(there);
  } catch (const core::Error& error) {
    facts.problem = error.what();
  }
  return facts;
}

}  // namespace sidestream::launch::doctor
