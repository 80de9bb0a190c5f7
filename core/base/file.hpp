// Files: read-only mappings, whole reads, and writes that are either complete or not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/unique_handle.hpp"

namespace sidestream::core {

struct FdTraits {
  using Value = int;
  static constexpr int null = -1;
  static void close(int fd) noexcept;
};
using UniqueFd = UniqueHandle<FdTraits>;

// A file mapped read-only; input files are never opened for writing. Throws Error with the system's
// text.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }

  // Bytes that the file has by now, which may have been cut or have grown. Nothing where another
  // one has its name, or none: what is mapped is then as it was.
  std::optional<std::size_t> size_now() const noexcept;

  // Pages that lie in these bytes no longer count as memory of this process. Whoever looks at them
  // again has them from the system's cache, or from the disk. Thread-safe.
  void drop_pages(std::size_t first, std::size_t count) const noexcept;
  void drop_pages() const noexcept { drop_pages(0, size_); }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
};

// The whole file. Throws Error with the system's text; more than limit_bytes is refused.
std::string read_file(const std::filesystem::path& path,
                      std::size_t limit_bytes = std::size_t{1} << 30);

// Hands the file over from its start to its end, a piece at a time. A mapping would count as memory
// of the process until it ends. Throws Error with the system's text.
void read_in_pieces(const std::filesystem::path& path,
                    const std::function<void(std::span<const std::byte>)>& take);

// Whether anything has this name or may have it, also a link that leads nowhere or to itself and
// what lies in a folder that may not be searched: who reads it then says why that cannot be.
bool is_there(const std::filesystem::path& path) noexcept;

// What is there and is no file, but takes bytes: a pipe, a terminal, /dev/null. Nothing may be
// renamed over it.
bool is_stream(const std::filesystem::path& path);

// Writes a sibling with a temporary name, syncs it, renames it over path and syncs the folder. On
// any failure the sibling is removed, the old file stays, and Error names the step and the system's
// text. What is_stream() is written to as it is.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// A name beside path that nothing has and nobody can foresee, for a file that is renamed to path:
// in the same folder, as a rename across file systems is no rename.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

// Makes `temporary`, or fails where anything has that name, also a link that somebody put there.
// Throws as fail_to_write("cannot create", path): path is the file that was asked for.
UniqueFd create_new(const std::filesystem::path& temporary, const std::filesystem::path& path);

// Throws Error for the errno of now: "cannot sync PATH: No space left on device". With the exit
// code of the configuration: where we write is the user's choice, as a flag is.
[[noreturn]] void fail_to_write(std::string_view what, const std::filesystem::path& path);

// Writes all of it to an open file, or fail_to_write.
void write_all(int fd, std::string_view content, const std::filesystem::path& path);

// Gives `fresh` the name `target`, and what had that name before the name of `fresh`: at once, so
// that a kill never leaves nothing there. False where the file system cannot exchange names (NFS).
bool exchange_names(const std::filesystem::path& fresh, const std::filesystem::path& target);

// Makes the entries of a folder durable (fsync of the folder itself).
void sync_folder(const std::filesystem::path& folder);

// "what PATH: text of errno", for messages.
std::string system_error_text(std::string_view what, const std::filesystem::path& path,
                              int error_number);

// "PATH: text of the error", with both paths where it has two, instead of the library's own text.
std::string filesystem_words(const std::filesystem::filesystem_error& error);

}  // namespace sidestream::core
