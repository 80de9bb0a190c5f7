// A temporary file that a fuzz target fills again and again. A real one: SQLite follows links, so a
// file in memory that only /proc knows would never be opened.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace sidestream::test {

class FuzzFile {
 public:
  explicit FuzzFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string()),
        file_(::mkstemp(path_.data())) {}
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;
  ~FuzzFile() {
    ::close(file_);
    ::unlink(path_.c_str());
  }

  void write(const std::uint8_t* data, std::size_t size) const {
    const bool written =
        ::ftruncate(file_, 0) == 0 && ::pwrite(file_, data, size, 0) == static_cast<ssize_t>(size);
    if (!written) __builtin_trap();
  }
  std::filesystem::path path() const { return path_; }

 private:
  std::string path_;
  int file_;
};

}  // namespace sidestream::test
