#include "core/base/file.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/host_name.hpp"
#include "core/base/mapping_table.hpp"
#include "core/base/open_file.hpp"
#include "core/base/write_error.hpp"

namespace sidestream::core {
namespace {

UniqueFd open_or_throw(const std::filesystem::path& path, int flags, std::string_view what) {
  // A pipe without a writer would be waited for, for ever.
  UniqueFd fd(::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!fd) throw Error(system_error_text(what, path, errno));
  return fd;
}

struct stat regular_status(const UniqueFd& fd, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw Error(system_error_text("cannot stat", path, errno));
  if (!S_ISREG(status.st_mode)) throw Error("not a regular file: " + path.string());
  return status;
}

// path: what messages name, which is the file that somebody asked for.
void write_and_sync(const std::filesystem::path& temporary, std::string_view content,
                    const std::filesystem::path& path) {
  const UniqueFd fd = create_new(temporary, path);
  write_all(fd.get(), content, path);
  if (::fsync(fd.get()) != 0) fail_to_write("cannot sync", path);
}

// The kernel says "no memory" of too many mappings, too.
[[noreturn]] void fail_to_map(const std::filesystem::path& path, int error_number) {
  const char* const remedy =
      error_number == ENOMEM ? " (or more files are mapped than `sysctl vm.max_map_count` lets a "
                               "process have: raise it, or use fewer and larger files)"
                             : "";
  throw Error(system_error_text("cannot map", path, error_number) + remedy);
}

// File systems have a largest file of their own.
const char* remedy_of_large_files() {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? " (`ulimit -f` lets files be larger, where their file system does)"
                    : " (its file system holds no larger one)";
}

}  // namespace

void FdTraits::close(int fd) noexcept { ::close(fd); }

std::string system_error_text(std::string_view what, const std::filesystem::path& path,
                              int error_number) {
  const char* const remedy = error_number == EMFILE  ? " (`ulimit -n` lets a process have more)"
                             : error_number == EFBIG ? remedy_of_large_files()
                                                     : "";
  return std::string(what) + " " + path.string() + ": " +
         std::generic_category().message(error_number) + remedy;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const UniqueFd fd = open_or_throw(path, O_RDONLY, "cannot open");
  const struct stat status = regular_status(fd, path);
  size_ = static_cast<std::size_t>(status.st_size);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (size_ == 0) return;  // mmap refuses a length of zero
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) fail_to_map(path, errno);
  data_ = static_cast<const std::byte*>(address);
  note_mapping(data_, size_, path_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      device_(other.device_),
      inode_(other.inode_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

std::optional<std::size_t> MappedFile::size_now() const noexcept {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return std::nullopt;
  if (status.st_dev != device_ || status.st_ino != inode_) return std::nullopt;
  return static_cast<std::size_t>(status.st_size);
}

void MappedFile::drop_pages(std::size_t first, std::size_t count) const noexcept {
  if (count == 0) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = first / page * page;  // a mapping begins at a page
  // Read-only, so that nothing is lost; where it fails, the pages stay.
  ::madvise(const_cast<std::byte*>(data_) + begin, first + count - begin, MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  const MappedFile file(path);
  if (file.bytes().size() > limit_bytes) {
    throw Error(path.string() + " has " + std::to_string(file.bytes().size()) +
                " bytes, more than the limit of " + std::to_string(limit_bytes));
  }
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void read_in_pieces(const std::filesystem::path& path,
                    const std::function<void(std::span<const std::byte>)>& take) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const UniqueFd fd = open_or_throw(path, O_RDONLY, "cannot open");
  std::vector<std::byte> buffer(kPiece);
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(system_error_text("cannot read", path, errno));
    if (got == 0) return;
    take(std::span(buffer).first(static_cast<std::size_t>(got)));
  }
}

void fail_to_write(std::string_view what, const std::filesystem::path& path) {
  const int error_number = errno;
  throw WriteError(system_error_text(what, path, error_number),
                   std::generic_category().message(error_number));
}

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to_write("cannot write", path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Hosts and containers that share a file system may have processes of the same number, and
// containers a host name: the random part tells them apart, the host is for people.
std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  std::random_device random;
  std::array<char, 17> part{};
  std::snprintf(part.data(), part.size(), "%08x%08x", random(), random());
  return path.string() + ".tmp." + host_name() + "." + part.data();
}

UniqueFd create_new(const std::filesystem::path& temporary, const std::filesystem::path& path) {
  UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) fail_to_write("cannot create", path);
  return fd;
}

bool exchange_names(const std::filesystem::path& fresh, const std::filesystem::path& target) {
  return ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0;
}

void sync_folder(const std::filesystem::path& folder) {
  const UniqueFd fd = open_or_throw(folder, O_RDONLY | O_DIRECTORY, "cannot open folder");
  if (::fsync(fd.get()) != 0) throw Error(system_error_text("cannot sync folder", folder, errno));
}

bool is_there(const std::filesystem::path& path) noexcept {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 || errno == EACCES;
}

bool is_stream(const std::filesystem::path& path) {
  if (leads_to_open_file(path)) return true;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  if (is_stream(path)) return write_all(open_stream(path).get(), content, path);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) != 0) fail_to_write("cannot write", path);
  const std::filesystem::path temporary = temporary_beside(path);
  try {
    write_and_sync(temporary, content, path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      fail_to_write("cannot rename to", path);
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder);
}

std::string filesystem_words(const std::filesystem::filesystem_error& error) {
  std::string paths = error.path1().string();
  if (!error.path2().empty()) paths += " to " + error.path2().string();
  return (paths.empty() ? "" : paths + ": ") + error.code().message();
}

}  // namespace sidestream::core
