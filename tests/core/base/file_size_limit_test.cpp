#include "core/base/file_size_limit.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

enum class Told { kYes, kNo };

// In a process of its own, which prints what a write beyond the limit says.
[[noreturn]] void write_beyond_the_limit(const std::filesystem::path& path, Told told) {
  ::signal(SIGXFSZ, SIG_DFL);  // whatever has started this test
  const rlimit limit{1000, 1000};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  if (told == Told::kYes) report_file_size_limit();
  try {
    write_file_atomically(path, std::string(5000, 'x'));
  } catch (const Error& error) {
    const std::string text = error.what();
    static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
    ::_exit(1);
  }
  ::_exit(0);
}

TEST(FileSizeLimitTest, a_write_beyond_it_fails_with_the_way_to_raise_it) {
  const ScratchFolder scratch;

  EXPECT_EXIT(write_beyond_the_limit(scratch / "a", Told::kYes), testing::ExitedWithCode(1),
              "cannot write .*a: File too large .`ulimit -f` lets files be larger");
  EXPECT_EXIT(write_beyond_the_limit(scratch / "b", Told::kNo), testing::KilledBySignal(SIGXFSZ),
              "");

  EXPECT_FALSE(std::filesystem::exists(scratch / "a"));
}

// Such as the 4 GiB of FAT.
TEST(FileSizeLimitTest, without_one_the_file_system_is_to_blame) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit unlimited{RLIM_INFINITY, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0) << "run it without `ulimit -f`";

  const std::string text = system_error_text("cannot write", "a", EFBIG);

  EXPECT_EQ(text, "cannot write a: File too large (its file system holds no larger one)");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

}  // namespace
}  // namespace sidestream::core
