// What the kernel says of a host's memory, from files that are made up.
#include "core/base/host_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(HostMemoryTest, read_takesMachineAndControlGroup) {
  const ScratchFolder folder;
  const auto write = [&](const std::filesystem::path& name, const std::string& text) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  };
  write("proc/meminfo",
        "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable: 3072 kB\nSwapTotal: 8 kB\n");
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "2097152\n");
  write("sys/fs/cgroup/memory.current", "1048576\n");

  const HostMemory memory = read_host_memory(folder.path() / "proc", folder.path() / "sys");

  EXPECT_TRUE(memory.is_known());
  EXPECT_EQ(memory.available_bytes, 3 * kMiB);
  EXPECT_EQ(memory.usable_bytes(), kMiB);
  EXPECT_EQ(memory.most_bytes(), 2 * kMiB + 8192);
}

TEST(HostMemoryTest, text_saysWhatIsFreeAndWhatMayBeLocked) {
  const HostMemory memory{
      .total_bytes = 4 * kMiB, .available_bytes = 3 * kMiB, .locked_bytes = 2 * kMiB};

  EXPECT_EQ(memory.text(), "3 MiB of host memory are free, and 2 MiB may be locked (ulimit -l)");
  EXPECT_EQ(HostMemory{}.text(),
            "free memory is not known, and any of it may be locked (ulimit -l)");
}

TEST(HostMemoryTest, kernel_thatSaysNothingLeavesItOpen) {
  const ScratchFolder folder;

  EXPECT_FALSE(read_host_memory(folder.path(), folder.path()).is_known());
}

}  // namespace
}  // namespace sidestream::core
