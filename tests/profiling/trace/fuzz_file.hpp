// A file in memory (memfd_create(2)) that a fuzz target fills again and again.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace sidestream::test {

class FuzzFile {
 public:
  explicit FuzzFile(const char* name) : file_(::memfd_create(name, 0)) {}
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;
  ~FuzzFile() { ::close(file_); }

  void write(const std::uint8_t* data, std::size_t size) const {
    const bool written =
        ::ftruncate(file_, 0) == 0 && ::pwrite(file_, data, size, 0) == static_cast<ssize_t>(size);
    if (!written) __builtin_trap();
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace sidestream::test
