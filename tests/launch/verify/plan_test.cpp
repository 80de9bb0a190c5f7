// What two sides may differ in, before any run is started.
#include "launch/verify/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/base/error.hpp"
#include "core/base/processors.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/verify/file_settings.hpp"
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
  VerifyOptions with_file(const std::string& more, const std::vector<std::string>& fresh = {}) {
    std::ofstream(scratch_ / "train.cfg") << "model = gpt2-tiny\ndata = synthetic\n" << more;
    VerifyOptions options = options_of({}, fresh);
    read_file_settings(options);
    return options;
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

TEST_F(PlanTest, paths_that_differ_behind_a_hash_are_two_paths) {
  for (const auto& [base, fresh] :
       {std::pair<std::string, std::string>{"w#1", "w#2"}, {"w # 1", "w # 2"}}) {
    VerifyOptions options = options_of({"--init", base}, {"--init", fresh});
    options.force = true;
    const auto differences = check_sides(options);

    ASSERT_EQ(differences.size(), 1u) << base;
    EXPECT_EQ(differences.front().base, base);
    EXPECT_EQ(differences.front().fresh, fresh);
  }
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

std::vector<PlannedRun> all_runs(const VerifyOptions& options) {
  std::vector<PlannedRun> runs = plan_runs(options);
  for (const auto& more : {plan_profiles(options), plan_proof(options)})
    runs.insert(runs.end(), more.begin(), more.end());
  return runs;
}

TEST_F(PlanTest, no_run_goes_on_from_the_checkpoint_of_the_file) {
  const VerifyOptions options = with_file("resume = /x/y\n");

  for (const PlannedRun& run : all_runs(options))
    EXPECT_EQ(parse_train_options(run.train_arguments).checkpoint.resume, "none") << describe(run);
  EXPECT_THAT(remarks_on_file(options),
              ::testing::ElementsAre(::testing::EndsWith(
                  "train.cfg:3: resume = /x/y is not taken over: every run starts from the "
                  "beginning")));
  EXPECT_TRUE(remarks_on_file(with_file("resume = none\nrecord = off\nsample-hz = 0\n")).empty());
}

TEST_F(PlanTest, a_recording_of_the_file_is_no_part_of_what_is_timed_unless_a_side_asks_for_it) {
  const VerifyOptions options = with_file("record = on\nsample-hz = 7\n", {"--record=on"});

  for (const PlannedRun& run : all_runs(options)) {
    const RecordOptions record = parse_train_options(run.train_arguments).record;
    const bool asked = run.purpose != RunPurpose::kProof && run.side == Side::kNew;
    EXPECT_EQ(record.record, asked ? RecordedSteps::kAll : RecordedSteps::kNone) << describe(run);
    EXPECT_EQ(record.sample_hz, run.purpose == RunPurpose::kProfile ? 20 : 0) << describe(run);
  }
  EXPECT_EQ(remarks_on_file(options).size(), 2u);
}

TEST_F(PlanTest, what_flags_say_themselves_has_no_remark_or_that_of_the_other_side) {
  const auto remarks = [&](const std::vector<std::string>& common,
                           const std::vector<std::string>& base,
                           const std::vector<std::string>& fresh) {
    VerifyOptions options = with_file("record = on\n", fresh);
    options.common = common;
    options.base = base;
    return remarks_on_file(options);
  };
  const std::vector<std::string> record = {"--record", "on"};
  const auto one_with = [](const std::string& words) {
    return ::testing::ElementsAre(::testing::HasSubstr("record = on is not taken over" + words));
  };

  EXPECT_THAT(remarks({}, {}, {}), one_with(": timed runs"));
  EXPECT_THAT(remarks(record, {}, {}), ::testing::IsEmpty());
  EXPECT_THAT(remarks({}, {"--record=on"}, record), ::testing::IsEmpty());
  EXPECT_THAT(remarks({}, record, {}), one_with(" by the new side: timed runs"));
  EXPECT_THAT(remarks({}, {}, record), one_with(" by the base side: timed runs"));
}

TEST_F(PlanTest, a_file_that_profiles_or_plants_faults_is_refused_with_its_line) {
  for (const std::string& line : {std::string("profile = wait=1,warmup=1,active=3"),
                                  std::string("inject = kill:rank=0,step=1")}) {
    try {
      with_file("\n" + line + "\n");
      ADD_FAILURE() << line << " would be in timed runs";
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(
          error.what(),
          ::testing::AllOf(::testing::HasSubstr("train.cfg:4: " + line.substr(0, line.find(' '))),
                           ::testing::HasSubstr("Take the line out")));
    }
  }
}

TEST_F(PlanTest, a_target_of_the_loss_has_its_evaluation_in_profiled_runs) {
  const std::string data = "data = " + tokens("here", 1) + "\n";
  std::ofstream(scratch_ / "train.cfg") << "model = gpt2-tiny\ntarget-val-loss = 2\n" << data;
  VerifyOptions options = options_of({}, {});
  read_file_settings(options);

  EXPECT_NO_THROW(check_sides(options));
  for (const PlannedRun& run : plan_profiles(options))
    EXPECT_EQ(parse_train_options(run.train_arguments).evaluation.every, run.steps);
  options = options_of({}, {});
  options.common = {"--data", "synthetic"};
  options.config = scratch_ / "plain.cfg";
  std::ofstream(options.config) << "model = gpt2-tiny\n";
  for (const PlannedRun& run : plan_profiles(options))
    EXPECT_EQ(parse_train_options(run.train_arguments).evaluation.every, 0) << "takes its time";
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
