// A data folder while it is being written: under a temporary name beside its own, so that it is
// there whole or not at all.
#pragma once

#include <filesystem>
#include <system_error>

#include "core/base/file.hpp"

namespace sidestream::data {

// Removed unless it was put in place. Its writer holds a lock on it, which ends with the process,
// however it ends: by that, what calls that were killed have left is known, and removed first.
class StagedFolder {
 public:
  // Throws ConfigError where `target` is something else than an absent or empty folder, or cannot
  // be made.
  explicit StagedFolder(const std::filesystem::path& target);
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder();

  const std::filesystem::path& path() const { return staged_; }
  const std::filesystem::path& target() const { return target_; }

  // Throws ConfigError; what was written is lost then.
  void put_in_place();

 private:
  void make_staged();
  bool make_and_hold(const std::filesystem::path& staged);

  std::filesystem::path target_;
  std::filesystem::path staged_;
  core::UniqueFd lock_;
};

}  // namespace sidestream::data
