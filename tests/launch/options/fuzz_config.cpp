// Configuration files against any text: refused with core::ConfigError, and nothing else; what is
// accepted is written back as a file that says the same.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "launch/options/train_parser.hpp"

namespace {

// A file in memory that options are read from.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("config", 0)) {
    if (descriptor_ < 0) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void fill(std::string_view text) {
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      std::abort();
  }

 private:
  int descriptor_;
};

std::optional<std::string> settings_in(std::string_view text) {
  static MemoryFile file;
  file.fill(text);
  try {
    return sidestream::launch::config_text(
        sidestream::launch::parse_train_options({"--config", file.path()}));
  } catch (const sidestream::core::ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto settings = settings_in({reinterpret_cast<const char*>(data), size});
  if (!settings) return 0;
  const auto again = settings_in(*settings);
  if (again == settings) return 0;
  std::fprintf(stderr, "written as\n%s\nread back as\n%s\n", settings->c_str(),
               again ? again->c_str() : "an error");
  std::abort();
}
