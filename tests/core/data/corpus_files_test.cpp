#include "core/data/corpus_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.hpp"
#include "tests/core/data/corpus_fixture.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

using CorpusFilesTest = testing::CorpusFixture;

TEST_F(CorpusFilesTest, a_link_to_nothing_is_told_like_a_file_that_cannot_be_read) {
  file("a.hpp", "1");
  fs::create_symlink("gone.hpp", folder_ / "in" / "b.hpp");
  fs::create_symlink("c.hpp", folder_ / "in" / "c.hpp");
  fs::create_symlink("gone.txt", folder_ / "in" / "other.txt");

  const auto files = find_corpus_files({(folder_ / "in").string()}, {"*.hpp"});

  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].fault, "");
  EXPECT_EQ(files[1].name, "in/b.hpp");
  EXPECT_EQ(files[1].fault, "a link to nothing");
  EXPECT_EQ(files[2].fault, "a link to nothing");
}

TEST_F(CorpusFilesTest, patterns_globs_and_duplicates) {
  file("b.hpp", "1");
  file("a.h", "2");
  file("a.txt", "3");
  file("sub/z.hpp", "4");
  fs::create_directory_symlink(folder_ / "in", folder_ / "in" / "sub" / "loop");
  const std::string in = (folder_ / "in").string();
  const auto names = [](const std::vector<CorpusFile>& files) {
    std::vector<std::string> result;
    for (const auto& file : files) result.push_back(file.name);
    return result;
  };

  EXPECT_THAT(names(find_corpus_files({in}, {"*.hpp", "*.h"})),
              ElementsAre("in/a.h", "in/b.hpp", "in/sub/z.hpp"));
  EXPECT_THAT(names(find_corpus_files({in + "/", in + "/b.hpp"}, {"*.hpp"})),
              ElementsAre("in/b.hpp", "in/sub/z.hpp"));
  EXPECT_THAT(names(find_corpus_files({in + "/*.h*"}, {})), ElementsAre("a.h", "b.hpp"));
  EXPECT_THROW(find_corpus_files({in + "/*.none"}, {}), core::DataError);
}

}  // namespace
}  // namespace sidestream::data
