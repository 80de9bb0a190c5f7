#include "core/faults/fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace sidestream::faults {
namespace {

using ::testing::HasSubstr;

std::string message_of(std::string_view text) {
  try {
    parse_faults(text);
    return "no error";
  } catch (const core::ConfigError& error) {
    return error.what();
  }
}

TEST(FaultTest, parse_several) {
  const auto faults =
      parse_faults("kill:rank=1,step=50 ; slow: rank = 0, ms=200;nan:steps=3,attempt=all;");

  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].kind, Kind::kKill);
  EXPECT_EQ(faults[0].rank, 1);
  EXPECT_EQ(faults[0].step, 50);
  EXPECT_EQ(faults[0].steps, 1);
  EXPECT_EQ(faults[0].attempt, 1);
  EXPECT_EQ(faults[1].kind, Kind::kSlow);
  EXPECT_EQ(faults[1].ms.count(), 200);
  EXPECT_EQ(faults[1].steps, 0) << "slow goes on";
  EXPECT_EQ(faults[2].rank, std::nullopt);
  EXPECT_EQ(faults[2].steps, 3);
  EXPECT_EQ(faults[2].attempt, 0);
  EXPECT_EQ(parse_faults("nan:attempt=0")[0].attempt, 0) << "as all";
}

TEST(FaultTest, parse_placesOfKinds) {
  EXPECT_EQ(parse_faults("disk-full")[0].at, Point::kCheckpoint);
  EXPECT_EQ(parse_faults("throw")[0].at, Point::kData);
  EXPECT_EQ(parse_faults("kill:at=commit")[0].at, Point::kCommit);
}

TEST(FaultTest, parse_refusesWithWhatIsPossible) {
  EXPECT_THAT(message_of(""), HasSubstr("expected a fault such as"));
  EXPECT_THAT(message_of("explode:rank=1"), HasSubstr("one of kill, stop"));
  EXPECT_THAT(message_of("explode:rank=1"), HasSubstr("found 'explode'"));
  EXPECT_THAT(message_of("kill:rank=1;kill:rnk=1"), HasSubstr("'kill:rnk=1': expected a key"));
  EXPECT_THAT(message_of("kill:rank=1,rank=0"), HasSubstr("expected 'rank' once"));
  EXPECT_THAT(message_of("kill:rank"), HasSubstr("expected KEY=VALUE, found 'rank'"));
  EXPECT_THAT(message_of("kill:"), HasSubstr("expected KEY=VALUE, found ''"));
  EXPECT_THAT(message_of("kill:step=-1"), HasSubstr("found '-1'"));
  EXPECT_THAT(message_of("kill:step=1x"), HasSubstr("found '1x'"));
  EXPECT_THAT(message_of("spike:factor=nan"), HasSubstr("found 'nan'"));
  EXPECT_THAT(message_of("kill:at=lunch"), HasSubstr("one of start, setup, restore, data"));
}

TEST(FaultTest, describe_saysWhoWhereWhen) {
  EXPECT_EQ(describe(parse_faults("kill:rank=1,step=50")[0]),
            "kill of rank 1 at forward of step 50");
  EXPECT_EQ(describe(parse_faults("disk-full")[0]), "disk-full of every rank at checkpoint");
}

}  // namespace
}  // namespace sidestream::faults
