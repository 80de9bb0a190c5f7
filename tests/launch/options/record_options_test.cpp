#include "tests/launch/options/train_parser_fixture.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;
using RecordOptionsTest = TrainParserFixture;

TEST_F(RecordOptionsTest, nothing_given_records_nothing) {
  const TrainOptions options = parse({});

  EXPECT_FALSE(options.record.any());
  EXPECT_FALSE(options.record.wants_modules());
}

TEST_F(RecordOptionsTest, schedule_inAnyOrder) {
  const auto schedule = parse({"--profile", "active=3,repeat=2,wait=4"}).record.profile.value();

  EXPECT_EQ(schedule.wait, 4);
  EXPECT_EQ(schedule.warmup, 1);
  EXPECT_EQ(schedule.active, 3);
  EXPECT_EQ(schedule.repeat, 2);
  EXPECT_EQ(profile_schedule_text(schedule), "wait=4,warmup=1,active=3,repeat=2");
}

TEST_F(RecordOptionsTest, wrongSchedules_sayWhatIsExpected) {
  for (const char* text : {"wait=1", "active=0", "active", "active=3,skip=1", "active=x", ""}) {
    try {
      parse_profile_schedule(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected")) << text;
    }
  }
}

TEST_F(RecordOptionsTest, wrongNumbersOfASchedule_areNamed) {
  for (const auto& [text, part] : {std::pair("wait=5,active=0", "active: expected"),
                                   std::pair("wait=-1,active=2", "wait: expected"),
                                   std::pair("repeat=x,active=2", "repeat: expected")}) {
    try {
      parse_profile_schedule(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(part)) << text;
    }
  }
}

TEST_F(RecordOptionsTest, modules_takeAPattern) {
  const std::string schedule = "active=1";

  EXPECT_EQ(parse({"--profile", schedule, "--profile-modules"}).record.modules, "on");
  EXPECT_EQ(parse({"--profile", schedule, "--profile-modules=h.*.mlp"}).record.modules, "h.*.mlp");
  EXPECT_FALSE(parse({"--profile", schedule, "--profile-modules=off"}).record.wants_modules());
}

TEST_F(RecordOptionsTest, details_needAWindow) {
  for (const char* flag : {"--profile-shapes", "--profile-memory", "--profile-stacks",
                           "--profile-flops", "--profile-modules"}) {
    EXPECT_THROW(parse({flag}), core::ConfigError) << flag;
  }
}

TEST_F(RecordOptionsTest, record_takesAllStepsOrEverySecond) {
  EXPECT_FALSE(parse({"--record", "on"}).record.every_second_step());
  EXPECT_TRUE(parse({"--record", "alternate"}).record.every_second_step());
  EXPECT_TRUE(parse({"--record", "alternate"}).record.whole_run());
  EXPECT_FALSE(parse({"--record", "off"}).record.any());
  EXPECT_THROW(parse({"--record", "sometimes"}), core::ConfigError);
}

TEST_F(RecordOptionsTest, samplesAlone_runTheRecorder) {
  EXPECT_TRUE(parse({"--sample-hz", "10"}).record.whole_run());
  EXPECT_FALSE(parse({"--sample-hz", "10", "--profile", "active=1"}).record.whole_run());
}

}  // namespace
}  // namespace sidestream::launch
