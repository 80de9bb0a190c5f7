#include "launch/verify/output_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/build_id.hpp"
#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::launch {
namespace {

constexpr const char* kRecord = R"({"version": "0.1.0", "build": "b",
  "machine": {"processor": "P", "nodes": 1}, "command_line": "sidestream train", "world_size": 2,
  "threads_per_rank": 1, "backend": "mpi", "precision": "fp32", "parameters": 10, "exit_code": 5,
  "performance": null})";

class OutputFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { set_sequence_length(32); }
  void set_sequence_length(int length) {
    std::ofstream(options().config)
        << "model = gpt2-tiny\nsequence-length = " << length << "\ndata = synthetic\n";
  }
  VerifyOptions options() const {
    VerifyOptions options;
    options.config = scratch_ / "train.cfg";
    options.output = scratch_ / "out";
    return options;
  }
  core::ScratchFolder scratch_;
};

TEST_F(OutputFolderTest, the_same_verification_goes_on) {
  { const OutputFolder first(options()); }
  EXPECT_NO_THROW(OutputFolder{options()});
}

TEST_F(OutputFolderTest, a_folder_with_something_else_in_it_is_left_alone) {
  std::filesystem::create_directories(scratch_ / "out");
  std::ofstream(scratch_ / "out" / "notes.txt") << "mine";
  EXPECT_THROW(OutputFolder{options()}, core::ConfigError);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out" / "runs"));
  VerifyOptions logged = options();
  logged.log = scratch_ / "out" / "notes.txt";  // the log may lie in it
  EXPECT_NO_THROW(OutputFolder{logged});
}

TEST_F(OutputFolderTest, another_content_of_the_same_configuration_is_another_verification) {
  const std::filesystem::path before = default_output(options());
  { const OutputFolder first(options()); }
  set_sequence_length(64);

  EXPECT_THROW(OutputFolder{options()}, core::ConfigError);
  EXPECT_NE(default_output(options()), before);
}

TEST_F(OutputFolderTest, verifications_beside_each_other_share_a_log) {
  VerifyOptions other = options();
  other.output = scratch_ / "another/";
  EXPECT_EQ(decision_log_of(options()), scratch_ / "decisions.jsonl");
  EXPECT_EQ(decision_log_of(other), scratch_ / "decisions.jsonl");
  other.log = "mine.jsonl";
  EXPECT_EQ(decision_log_of(other), "mine.jsonl");
}

TEST_F(OutputFolderTest, runs_of_another_build_are_no_part_of_it) {
  { const OutputFolder first(options()); }
  const std::filesystem::path file = scratch_ / "out" / "verification.json";
  std::string text = core::read_file(file);
  const std::string build = core::program_identity();
  ASSERT_NE(text.find(build), std::string::npos);
  text.replace(text.find(build), build.size(), std::string(build.size(), '0'));
  core::write_file_atomically(file, text);

  EXPECT_THROW(OutputFolder{options()}, core::ConfigError);
}

TEST_F(OutputFolderTest, a_damaged_folder_is_no_other_verification) {
  { const OutputFolder first(options()); }
  core::write_file_atomically(scratch_ / "out" / "verification.json", "");

  try {
    const OutputFolder again(options());
    FAIL() << "nothing was thrown";
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("verification.json is damaged"));
  }
}

TEST_F(OutputFolderTest, the_environment_is_that_of_the_first_run_with_a_record) {
  std::vector<PlannedRun> runs(3);
  for (std::size_t i = 0; const char* name : {"none", "torn", "whole"})
    runs[i++].folder = scratch_ / name;
  EXPECT_TRUE(environment_of_first(runs).empty());
  verify::write_file(scratch_ / "torn" / "run.json", "{");
  for (const char* name : {"run.json", "config.cfg", "metrics.jsonl"})
    verify::write_file(scratch_ / "whole" / name, name == std::string("run.json") ? kRecord : "");

  EXPECT_EQ(environment_of_first(runs).at("processor"), "P");
}

}  // namespace
}  // namespace sidestream::launch
