// A folder of texts for tests, "in", in a folder of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data::testing {

class CorpusFixture : public ::testing::Test {
 protected:
  void file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / "in" / name;
    std::filesystem::create_directories(path.parent_path());
    write_bytes(path, text);
  }

  core::ScratchFolder folder_;
};

}  // namespace sidestream::data::testing
