#include "core/checkpoint/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "core/base/digest.hpp"
#include "core/base/error.hpp"
#include "core/checkpoint/unreadable_error.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string expected, std::string found) {
  throw core::CheckpointError(core::FileFault{.file = path.string(),
                                              .offset_bytes = {},
                                              .expected = std::move(expected),
                                              .found = std::move(found)});
}

[[noreturn]] void cannot_read(const fs::path& path, const std::error_code& error) {
  throw UnreadableError(fmt::format("cannot read {}: {}", path.string(), error.message()));
}

void check_size(const fs::path& folder, const FileDigest& file) {
  const fs::path path = folder / file.name;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::none) cannot_read(path, error);
  if (status.type() == fs::file_type::not_found) fail(path, "a file", "no such file");
  if (status.type() != fs::file_type::regular)
    fail(path, "a regular file", "a link, folder or device");
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) cannot_read(path, error);
  if (bytes != file.bytes) fail(path, std::to_string(file.bytes) + " bytes", std::to_string(bytes));
}

void check_hash(const fs::path& folder, const FileDigest& file) {
  const fs::path path = folder / file.name;
  std::string found;
  try {
    found = core::sha256_hex_of_file(path);
  } catch (const core::Error& error) {
    throw UnreadableError(error.what());
  }
  if (found != file.sha256) fail(path, "SHA-256 " + file.sha256, found);
}

// Workers take the next file until none is left; the error of the first file in the manifest's
// order is kept.
void check_hashes(const fs::path& folder, const std::vector<FileDigest>& files) {
  constexpr std::size_t kMaxWorkers = 8;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t workers = std::min({files.size(), cores, kMaxWorkers});
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> errors(files.size());
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        check_hash(folder, files[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::future<void>> running;
  for (std::size_t i = 1; i < workers; ++i) running.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& one : running) one.get();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

Manifest verify_checkpoint(const fs::path& folder, VerifyDepth depth) {
  Manifest manifest = read_manifest(folder);
  for (const FileDigest& file : manifest.files) check_size(folder, file);
  if (depth == VerifyDepth::kHashes) check_hashes(folder, manifest.files);
  return manifest;
}

}  // namespace sidestream::checkpoint
