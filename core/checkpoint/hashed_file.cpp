#include "core/checkpoint/hashed_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.hpp"

namespace sidestream::checkpoint {
namespace {

constexpr const char* kWhatStays =
    "; finished checkpoints stay, and a run goes on from them once it can write";

}  // namespace

HashedFile::HashedFile(const std::filesystem::path& path)
    : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (!fd_) fail("cannot create");
}

HashedFile::~HashedFile() {
  if (fd_) ::unlink(path_.c_str());
}

void HashedFile::fail(std::string_view what) const {
  throw core::CheckpointError(core::system_error_text(what, path_, errno) + kWhatStays);
}

void HashedFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kPiece = std::size_t{1}
                                 << 20;  // hashed, then written while still in the cache
  while (!bytes.empty()) {
    std::span<const std::byte> piece = bytes.first(std::min(kPiece, bytes.size()));
    bytes = bytes.subspan(piece.size());
    hash_.update(piece);
    bytes_ += piece.size();
    try {
      core::write_all(fd_.get(), {reinterpret_cast<const char*>(piece.data()), piece.size()},
                      path_);
    } catch (const core::Error& error) {
      throw core::CheckpointError(error.what() + std::string(kWhatStays));
    }
  }
}

void HashedFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

FileDigest HashedFile::finish() {
  if (::fsync(fd_.get()) != 0) fail("cannot sync");
  fd_.reset();
  return {.name = path_.filename().string(), .bytes = bytes_, .sha256 = hash_.finish()};
}

}  // namespace sidestream::checkpoint
