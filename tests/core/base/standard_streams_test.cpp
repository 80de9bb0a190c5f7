#include "core/base/standard_streams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

// In a process of its own, which ends with 0 when the file got none of the streams' numbers.
[[noreturn]] void open_a_file_without(const std::vector<int>& closed, const std::string& path) {
  for (const int fd : closed) ::close(fd);
  open_closed_streams();
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  bool works = file > STDERR_FILENO;
  for (const int fd : closed) works = works && ::write(fd, "words\n", 6) == 6;
  ::_exit(works ? 0 : 1);
}

TEST(StandardStreamsTest, openClosedStreams_filesGetOtherDescriptors) {
  const ScratchFolder scratch;
  const std::filesystem::path path = scratch / "lock";
  const std::vector<std::vector<int>> cases = {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {0, 1, 2}};
  for (const std::vector<int>& closed : cases) {
    EXPECT_EXIT(open_a_file_without(closed, path), ::testing::ExitedWithCode(0), "");

    EXPECT_EQ(std::filesystem::file_size(path), 0U);
  }
}

}  // namespace
}  // namespace sidestream::core
