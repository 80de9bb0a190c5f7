#include "tests/profiling/trace/trace_folder.hpp"

#include <fstream>
#include <vector>

#include "profiling/trace/byte_source.hpp"

namespace sidestream::test {

std::filesystem::path trace_folder() {
  return std::filesystem::path(SIDESTREAM_SOURCE_FOLDER).parent_path() / "shared" / "traces";
}

void unpack(const std::filesystem::path& gzip, const std::filesystem::path& into) {
  const auto source = trace::open_byte_source(gzip);
  std::ofstream file(into, std::ios::binary);
  std::vector<char> block(1 << 16);
  while (const std::size_t got = source->read(block.data(), block.size()))
    file.write(block.data(), static_cast<std::streamsize>(got));
}

}  // namespace sidestream::test
