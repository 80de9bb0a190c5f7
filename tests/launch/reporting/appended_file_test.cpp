#include "launch/reporting/appended_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/core/base/full_disk.hpp"
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

TEST(AppendedFileTest, what_a_full_disk_refuses_is_written_later_in_order) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  {
    const core::FullDisk full(10);
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

TEST(AppendedFileTest, file_that_was_removed_is_made_again) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  file.append("a\n");
  std::filesystem::remove(file.path());

  file.append("b\n", AppendedFile::Durability::kOnDisk);

  EXPECT_EQ(content_of(file.path()), "b\n");
}

TEST(AppendedFileTest, file_that_is_made_again_begins_as_the_first_one) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  file.append("begin\n");
  file.begin_anew_with("begin\n");
  file.append("a\n");
  EXPECT_EQ(content_of(file.path()), "begin\na\n");
  std::filesystem::remove(file.path());

  file.append("b\n", AppendedFile::Durability::kOnDisk);

  EXPECT_EQ(content_of(file.path()), "begin\nb\n");
}

TEST(AppendedFileTest, what_a_guard_refuses_waits) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  bool refuses = false;
  file.guard_opening([&] {
    if (refuses) throw core::CheckpointError("another run's folder");
  });
  file.append("a\n");
  std::filesystem::remove(file.path());
  std::ofstream(file.path()) << "theirs\n";
  refuses = true;

  file.append("b\n", AppendedFile::Durability::kOnDisk);
  file.append("c\n");
  EXPECT_EQ(content_of(file.path()), "theirs\n");
  ASSERT_TRUE(file.trouble());
  EXPECT_THAT(file.trouble()->what(), HasSubstr("another run's folder"));

  std::filesystem::remove(file.path());
  refuses = false;
  file.finish();
  EXPECT_EQ(content_of(file.path()), "b\nc\n");
}

TEST(AppendedFileTest, file_that_is_made_again_does_not_begin_in_the_middle_of_a_record) {
  const core::ScratchFolder scratch;
  for (const auto& [content, expected] :
       {std::pair(Content::kLines, "line 3\n"), std::pair(Content::kRecords, "")}) {
    AppendedFile file(scratch / "log", content);
    file.append("line 1\n", AppendedFile::Durability::kOnDisk);
    {
      const core::FullDisk full(10);
      file.append("line 2\n");  // the disk takes a part of it
      file.append("line 3\n");
    }
    std::filesystem::remove(file.path());

    file.finish();
    EXPECT_EQ(content_of(file.path()), expected);
    std::filesystem::remove(file.path());
  }
}

TEST(AppendedFileTest, file_that_was_moved_goes_on_where_it_is) {
  const core::ScratchFolder scratch;
  AppendedFile file(scratch / "log.jsonl", Content::kLines);
  file.append("a\n");
  std::filesystem::rename(file.path(), scratch / "moved.jsonl");

  file.append("b\n", AppendedFile::Durability::kOnDisk);

  EXPECT_EQ(content_of(scratch / "moved.jsonl"), "a\nb\n");
  EXPECT_FALSE(std::filesystem::exists(file.path()));
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
