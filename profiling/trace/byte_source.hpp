// The bytes of a file from front to back, unpacked
// when it is gzip, without ever holding all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace sidestream::trace {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // At most `capacity` bytes; 0 at the end. Throws core::DataError for a file that cannot be read.
  virtual std::size_t read(char* into, std::size_t capacity) = 0;
};

// Plain or gzip, told apart by the first two bytes (RFC
// 1952), not by the name. The file is opened read-only.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path);

}  // namespace sidestream::trace
