// What Kineto writes of a profiled window, before it becomes the window's own file.
#pragma once

#include <filesystem>
#include <utility>

namespace sidestream::launch {

class RawFile {
 public:
  explicit RawFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~RawFile() { remove(); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  // Kineto warns and goes on where it cannot write: throws core::WriteError where the file is not
  // there.
  void require() const;

  // Also what is left of one that Kineto could not complete, which has another name.
  void remove() const noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace sidestream::launch
