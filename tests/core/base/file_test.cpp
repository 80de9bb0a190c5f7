#include "core/base/file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/host_name.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

// Runs the body in a child process that may have no more than limit_bytes of a resource (of
// RLIMIT_FSIZE: in one file); true when the child exits with 0.
template <typename Body>
bool holds_with_limit(decltype(RLIMIT_AS) resource, rlim_t limit_bytes, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{limit_bytes, limit_bytes};
    const bool good = ::setrlimit(resource, &limit) == 0 && body();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(FileTest, write_file_atomically_replaces_the_content_and_leaves_no_other_file) {
  const ScratchFolder folder;

  write_file_atomically(folder / "a", "old");
  write_file_atomically(folder / "a", "new content");

  EXPECT_EQ(read_file(folder / "a"), "new content");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(FileTest, write_file_atomically_when_the_disk_is_full_keeps_the_old_file) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a", "old");

  const bool refused = holds_with_limit(RLIMIT_FSIZE, 1000, [&] {
    try {
      write_file_atomically(folder / "a", std::string(5000, 'x'));
    } catch (const Error& error) {
      return std::string(error.what()).find("cannot write") != std::string::npos;
    }
    return false;
  });

  EXPECT_TRUE(refused);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(FileTest, write_file_atomically_over_a_folder_fails_and_removes_the_temporary_file) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "a" / "inside");

  EXPECT_THROW(write_file_atomically(folder / "a", "content"), Error);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(FileTest, write_file_atomically_into_an_absent_folder_names_the_path) {
  try {
    write_file_atomically("/nonexistent_folder/a", "content");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent_folder/a"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

TEST(MappedFileTest, empty_file_is_an_empty_span) {
  const ScratchFolder folder;
  std::ofstream(folder / "empty").flush();

  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFileTest, moved_from_is_empty) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a", "abc");
  MappedFile source(folder / "a");

  const MappedFile target(std::move(source));

  EXPECT_EQ(target.bytes().size(), 3u);
  EXPECT_TRUE(source.bytes().empty());
}

TEST(MappedFileTest, folder_or_absent_file_throws) {
  const ScratchFolder folder;

  EXPECT_THROW(MappedFile(folder.path()), Error);
  EXPECT_THROW(MappedFile(folder / "absent"), Error);
}

// Address space that this process has already: under a sanitizer, terabytes.
rlim_t address_space_bytes() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

TEST(MappedFileTest, what_may_be_short_when_a_file_cannot_be_mapped_is_said) {
  const ScratchFolder folder;
  write_file_atomically(folder / "large", "");
  std::filesystem::resize_file(folder / "large", 1ull << 32);
  const rlim_t room_for_the_message = 1 << 30;
  EXPECT_TRUE(holds_with_limit(RLIMIT_AS, address_space_bytes() + room_for_the_message, [&] {
    try {
      const MappedFile file(folder / "large");
      return false;
    } catch (const Error& error) {
      return std::string(error.what()).find("vm.max_map_count") != std::string::npos;
    }
  }));
}

TEST(MappedFileTest, pipe_without_a_writer_throws_at_once) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);

  EXPECT_THROW(MappedFile(folder / "pipe"), Error);
}

TEST(FileTest, write_file_atomically_does_not_write_through_a_link) {
  const ScratchFolder folder;
  write_file_atomically(folder / "victim", "old");
  std::filesystem::create_symlink("victim", folder / "b");

  write_file_atomically(folder / "b", "new");

  EXPECT_EQ(read_file(folder / "victim"), "old");
  EXPECT_EQ(read_file(folder / "b"), "new");
}

// On another host, or in another container, that shares the file system.
TEST(FileTest, write_file_atomically_takes_no_name_that_a_process_of_this_number_may_have) {
  const ScratchFolder folder;
  const std::string number = std::to_string(::getpid());
  const std::vector<std::string> theirs = {"a.tmp." + number,
                                           "a.tmp." + host_name() + "." + number};
  for (const std::string& name : theirs) std::ofstream(folder / name) << "theirs";

  write_file_atomically(folder / "a", "mine");

  EXPECT_EQ(read_file(folder / "a"), "mine");
  for (const std::string& name : theirs) EXPECT_EQ(read_file(folder / name), "theirs");
}

TEST(FileTest, read_file_above_the_limit_throws) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a", "abcd");

  EXPECT_EQ(read_file(folder / "a", 4), "abcd");
  EXPECT_THROW(read_file(folder / "a", 3), Error);
}

TEST(FileTest, filesystem_words_name_the_paths_that_there_are) {
  using std::filesystem::filesystem_error;
  const auto gone = std::make_error_code(std::errc::no_such_file_or_directory);
  EXPECT_EQ(filesystem_words({"rename", "a", "b", gone}), "a to b: No such file or directory");
  EXPECT_EQ(filesystem_words({"open", "a", gone}), "a: No such file or directory");
  EXPECT_EQ(filesystem_words({"current_path", gone}), "No such file or directory");
}

}  // namespace
}  // namespace sidestream::core
