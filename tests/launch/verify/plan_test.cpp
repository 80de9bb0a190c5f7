// What two sides may differ in, before any run is started.
#include "launch/verify/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/base/error.hpp"
#include "core/base/processors.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::launch {
namespace {

using data::testing::counting;

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(scratch_ / "train.cfg") << "model = gpt2-tiny\ndata = synthetic\n";
  }
  std::string tokens(const std::string& folder, std::uint16_t first) {
    std::filesystem::create_directories(scratch_ / folder);
    for (const char* name : {"train.bin", "val.bin"})
      data::testing::write_bytes(scratch_ / folder / name,
                                 data::testing::llm_c_bytes(counting(first, 500)));
    return (scratch_ / folder).string();
  }
  std::vector<verify::Difference> check(const std::vector<std::string>& base,
                                        const std::vector<std::string>& fresh) const {
    return check_sides(options_of(base, fresh));
  }
  VerifyOptions options_of(const std::vector<std::string>& base,
                           const std::vector<std::string>& fresh) const {
    VerifyOptions options;
    options.config = scratch_ / "train.cfg";
    options.output = scratch_ / "out";
    options.base = base;
    options.fresh = fresh;
    return options;
  }
  core::ScratchFolder scratch_;
};

TEST_F(PlanTest, a_copy_of_the_data_is_the_same_data) {
  const std::string here = tokens("here", 1), copy = tokens("copy", 1), other = tokens("other", 2);
  EXPECT_NO_THROW(check({"--data", here}, {"--data", copy}));
  EXPECT_THROW(check({"--data", here}, {"--data", other}), core::ConfigError);
  EXPECT_THROW(check({"--data", here}, {"--data", "synthetic"}), core::ConfigError);
  std::filesystem::remove(scratch_ / "copy" / "val.bin");
  EXPECT_THROW(check({"--data", here}, {"--data", copy}), core::ConfigError);
}

TEST_F(PlanTest, what_the_advice_names_can_be_proved) {
  EXPECT_EQ(check({}, {"--pad-vocab", "64"}).size(), 1u);
  EXPECT_EQ(check({}, {"--device", "cpu"}).size(), 1u) << "auto chooses one";
  EXPECT_THROW(check({"--device", "cuda"}, {"--device", "cpu"}), core::ConfigError);
  EXPECT_THROW(check({}, {"--width", "32"}), core::ConfigError);
}

TEST_F(PlanTest, ranks_of_this_host_start_whatever_their_number_and_the_path_of_the_program) {
  ::unsetenv("SLURM_JOB_NODELIST");
  VerifyOptions options = options_of({}, {});
  options.ranks = core::allowed_cores() + 1;
  const PlannedRun run = plan_runs(options).front();

  std::vector<std::string> words = start_command(options, run, "/a=b/sidestream");
  EXPECT_THAT(words, ::testing::Contains("--oversubscribe"));
  const auto program = std::find(words.begin(), words.end(), "/a=b/sidestream");
  ASSERT_NE(program, words.end());
  EXPECT_EQ(*(program - 1), "exec \"$0\" \"$@\"") << "env would take it for a setting";
}

TEST_F(PlanTest, a_side_that_needs_a_gpu_is_refused_where_there_is_none) {
  ::unsetenv("SLURM_JOB_NODELIST");
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--precision", "fp16"},
                                                {"--precision", "bf16", "--packed-attention", "on"},
                                                {"--precision", "bf16", "--tune-products", "on"},
                                                {"--cuda-graph", "on"}}) {
    VerifyOptions options = options_of({}, flags);
    EXPECT_NO_THROW(check_device(options, /*has_gpu=*/true));
    try {
      check_device(options, /*has_gpu=*/false);
      ADD_FAILURE() << flags.front() << " " << flags.back() << " would have been run";
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith("new side: --"));
    }
    options.hosts = "a:1,b:1";
    EXPECT_NO_THROW(check_device(options, /*has_gpu=*/false)) << "theirs are not known here";
  }
  EXPECT_NO_THROW(check_device(options_of({}, {"--precision", "bf16"}), /*has_gpu=*/false));
  VerifyOptions on_gpu = options_of({}, {"--device", "cuda", "--precision", "fp16"});
  EXPECT_THROW(check_device(on_gpu, false), core::ConfigError);
  on_gpu.dry_run = true;
  EXPECT_NO_THROW(check_device(on_gpu, false)) << "a plan for another machine";
}

}  // namespace
}  // namespace sidestream::launch
