#include "tests/profiling/trace/trace_folder.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "profiling/trace/byte_source.hpp"

namespace sidestream::test {

std::vector<std::filesystem::path> traces_with_truth() {
  const std::filesystem::path source = SIDESTREAM_SOURCE_FOLDER;
  std::vector<std::filesystem::path> folders;
  for (const auto& place :
       {source / "tests" / "data" / "traces", source.parent_path() / "shared" / "traces"}) {
    if (!std::filesystem::exists(place)) continue;
    const auto first = folders.insert(folders.end(), std::filesystem::directory_iterator(place),
                                      std::filesystem::directory_iterator());
    std::sort(first, folders.end());
  }
  std::erase_if(folders, [](const std::filesystem::path& folder) {
    return !std::filesystem::exists(folder / "expected_truth.json");
  });
  return folders;
}

void unpack(const std::filesystem::path& gzip, const std::filesystem::path& into) {
  const auto source = trace::open_byte_source(gzip);
  std::ofstream file(into, std::ios::binary);
  std::vector<char> block(1 << 16);
  while (const std::size_t got = source->read(block.data(), block.size()))
    file.write(block.data(), static_cast<std::streamsize>(got));
}

}  // namespace sidestream::test
