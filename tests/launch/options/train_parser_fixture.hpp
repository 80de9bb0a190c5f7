// What the tests of the parser share: a folder for files, calls with the data given, messages of
// errors.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {

using Arguments = std::vector<std::string>;

class TrainParserFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("train_parser_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& text) const {
    const std::filesystem::path path = folder_ / "train.cfg";
    std::ofstream(path) << text;
    return path.string();
  }

  TrainOptions parse(Arguments arguments) const {
    arguments.insert(arguments.begin(), {"--data", "synthetic"});
    return parse_train_options(arguments);
  }

  std::string error_of(const Arguments& arguments) const {
    try {
      parse_train_options(arguments);
    } catch (const core::ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error_with_data(Arguments arguments) const {
    arguments.insert(arguments.begin(), {"--data", "synthetic"});
    return error_of(arguments);
  }

  std::filesystem::path folder_;
};

}  // namespace sidestream::launch
