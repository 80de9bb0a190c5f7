#include "launch/verify/output_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/build_id.hpp"
#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

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

}  // namespace
}  // namespace sidestream::launch
