// A new file that is hashed while it is written, and its size and hash as the manifest stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/base/file.hpp"
#include "core/base/sha256.hpp"

namespace sidestream::checkpoint {

struct FileDigest {
  std::string name;  // without folders
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits

  bool operator==(const FileDigest&) const = default;
};

// Creates a file that must not exist yet; removes it again unless finish() is reached.
class HashedFile {
 public:
  // Throws CheckpointError with the system's text.
  explicit HashedFile(const std::filesystem::path& path);
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;
  ~HashedFile();

  // Throws CheckpointError with the system's text (disk full, quota, ...).
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  // Syncs and closes. Throws CheckpointError.
  FileDigest finish();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  core::UniqueFd fd_;
  core::Sha256 hash_;
  std::uint64_t bytes_ = 0;
};

}  // namespace sidestream::checkpoint
