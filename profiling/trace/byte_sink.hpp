// A file that is written from front to back, gzip when its name ends in .gz, and appears only when
// it is complete. A pipe or a device is written to as it is.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace sidestream::trace {

class ByteSink {
 public:
  // Writes to a sibling with a temporary name, which a killed process leaves: it ends in .partial.
  // Throws core::Error with the system's text, here and below.
  explicit ByteSink(std::filesystem::path path);
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  // Without finish() nothing is left behind.
  ~ByteSink();

  void write(std::string_view bytes);
  void finish();

 private:
  void drop_partial() noexcept;

  struct Stream;
  std::filesystem::path path_;
  std::filesystem::path partial_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace sidestream::trace
