#include "launch/reporting/appended_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;
using Content = AppendedFile::Content;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// As on a full disk: files of this process cannot become larger.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(AppendedFileTest, what_a_full_disk_refuses_is_written_later_in_order) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  {
    const FullDisk full(10);
    file.append("line 1\n");
    file.append("line 2\n");  // the disk takes a part of it
    file.append("line 3\n");
    EXPECT_EQ(content_of(file.path()), "line 1\nlin");
    ASSERT_TRUE(file.trouble());
    EXPECT_THAT(file.trouble()->what(), HasSubstr("cannot write " + file.path().string()));
    EXPECT_THROW(file.finish(), core::WriteError);
  }

  file.append("line 4\n");

  EXPECT_FALSE(file.trouble());
  EXPECT_EQ(content_of(file.path()), "line 1\nline 2\nline 3\nline 4\n");
}

TEST(AppendedFileTest, what_a_failed_sync_has_lost_is_written_again) {
  const core::ScratchFolder scratch;
  bool fails = false;
  const auto sync = [&](int) {
    errno = EIO;
    return fails ? -1 : 0;
  };
  AppendedFile file(scratch / "log.jsonl", Content::kLines, sync);
  file.append("line 1\n");
  file.sync();
  file.append("line 2\n");
  fails = true;
  file.sync();
  ASSERT_TRUE(file.trouble());
  std::filesystem::resize_file(file.path(), 9);  // what the system has dropped

  file.append("line 3\n");
  fails = false;
  file.finish();
  EXPECT_EQ(content_of(file.path()), "line 1\nline 2\nline 3\n");
}

TEST(AppendedFileTest, what_others_have_written_behind_a_failed_sync_stays) {
  const core::ScratchFolder scratch;
  bool fails = true;
  AppendedFile file(scratch / "log.jsonl", Content::kLines, [&](int) { return fails ? -1 : 0; });
  file.append("mine\n");
  file.sync();
  std::ofstream(file.path(), std::ios::app) << "theirs\n";
  fails = false;
  file.finish();
  EXPECT_EQ(content_of(file.path()), "mine\ntheirs\nmine\n");
}

TEST(AppendedFileTest, folder_that_comes_back_is_written_to) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "later" / "log.jsonl", Content::kLines);
  file.append("a\n");
  EXPECT_THROW(file.finish(), core::WriteError);

  std::filesystem::create_directory(scratch / "later");
  file.finish();

  EXPECT_EQ(content_of(file.path()), "a\n");
}

TEST(AppendedFileTest, news_are_told_at_once_every_minute_and_at_the_end) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "later" / "log.jsonl", Content::kLines);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(file.news(now));

  file.append("a\n");
  EXPECT_THAT(file.news(now).value_or(""), HasSubstr("No such file or directory"));
  EXPECT_FALSE(file.news(now + std::chrono::seconds(59)));
  EXPECT_TRUE(file.news(now + std::chrono::seconds(60)));

  std::filesystem::create_directory(scratch / "later");
  file.sync();
  EXPECT_THAT(file.news(now).value_or(""), HasSubstr("can be written again"));
  EXPECT_FALSE(file.news(now));
}

TEST(AppendedFileTest, line_that_a_kill_has_torn_is_closed_first) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "log.jsonl") << "torn";
  std::ofstream(scratch / "records") << "torn";

  AppendedFile lines(scratch / "log.jsonl", Content::kLines);
  lines.append("a\n");
  AppendedFile records(scratch / "records", Content::kRecords);
  records.append("a");

  EXPECT_EQ(content_of(lines.path()), "torn\na\n");
  EXPECT_EQ(content_of(records.path()), "torna");
}

TEST(AppendedFileTest, link_is_not_followed) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "elsewhere") << "precious\n";
  std::filesystem::create_symlink(scratch / "elsewhere", scratch / "log.jsonl");

  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  file.append("a\n");

  EXPECT_TRUE(file.trouble());
  EXPECT_EQ(content_of(scratch / "elsewhere"), "precious\n");
}

}  // namespace
}  // namespace sidestream::launch
