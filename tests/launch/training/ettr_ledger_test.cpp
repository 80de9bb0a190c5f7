#include "launch/trainer/ettr_ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/base/error.hpp"
#include "core/checkpoint/checkpoint_interval.hpp"
#include "launch/reporting/jsonl_file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json progress(double at, double training_s, double stall_s = 0, double evaluation_s = 0) {
  return {{"event", "progress"},
          {"at", at},
          {"training_s", training_s},
          {"stall_s", stall_s},
          {"evaluation_s", evaluation_s}};
}

// Two starts: the first is killed at 160 with 50 s of steps, of which 30 s are in a checkpoint; the
// second ends well.
std::vector<json> killed_once() {
  json finished = progress(300, 140, 4, 6);
  finished["event"] = "finished";
  finished["code"] = 0;
  return {
      {{"event", "launched"}, {"at", 100.0}, {"attempt", 1}},
      {{"event", "started"}, {"at", 107.0}, {"training_s", 0}, {"startup_s", 5}, {"restore_s", 0}},
      progress(140, 30, 2),
      progress(160, 50, 2),
      {{"event", "ended"}, {"at", 161.5}, {"attempt", 1}, {"code", 137}},
      {{"event", "launched"}, {"at", 163.0}, {"attempt", 2}},
      {{"event", "started"}, {"at", 173.0}, {"training_s", 30}, {"startup_s", 6}, {"restore_s", 3}},
      finished,
      {{"event", "ended"}, {"at", 301.0}, {"attempt", 2}, {"code", 0}}};
}

TEST(EttrLedgerTest, account_partsAddUp) {
  const EttrAccount account = account_of(killed_once(), 9999);

  EXPECT_DOUBLE_EQ(account.wall_s, 201);
  EXPECT_DOUBLE_EQ(account.productive_s, 140);
  EXPECT_DOUBLE_EQ(account.replayed_s, 20);
  EXPECT_DOUBLE_EQ(account.startup_s, 7 + 7);
  EXPECT_DOUBLE_EQ(account.restore_s, 3);
  EXPECT_DOUBLE_EQ(account.checkpoint_stall_s, 6);
  EXPECT_DOUBLE_EQ(account.evaluation_s, 6);
  EXPECT_DOUBLE_EQ(account.detection_s, 1.5 + 1);
  EXPECT_DOUBLE_EQ(account.idle_s, 1.5);
  EXPECT_NEAR(account.other_s, 201 - 140 - 20 - 14 - 3 - 6 - 6 - 2.5 - 1.5, 1e-9);
  EXPECT_EQ(account.starts, 2);
  EXPECT_EQ(account.failures, 1);
  EXPECT_DOUBLE_EQ(*account.mtbf_s(), 201);
  EXPECT_DOUBLE_EQ(account.ettr(), 140.0 / 201);
}

TEST(EttrLedgerTest, account_stepsOfACheckpointBehindTheLastLine) {
  std::vector<json> ledger = killed_once();
  ledger[6]["training_s"] = 51;  // a second of steps after the line at 160

  const EttrAccount account = account_of(ledger, 9999);

  EXPECT_DOUBLE_EQ(account.replayed_s, 0);
  EXPECT_DOUBLE_EQ(account.detection_s, 0.5 + 1);
  EXPECT_NEAR(account.other_s, 201 - 140 - 14 - 3 - 6 - 6 - 1.5 - 1.5, 1e-9);
}

// The same, with a start in between that died in its set-up, from 163 to 166: it takes nothing
// along.
std::vector<json> killed_twice(double resumed_at_s) {
  std::vector<json> ledger = killed_once();
  ledger[5]["attempt"] = 3;
  ledger[5]["at"] = 168.0;
  ledger[6]["training_s"] = resumed_at_s;
  const std::vector<json> between = {
      {{"event", "launched"}, {"at", 163.0}, {"attempt", 2}},
      {{"event", "ended"}, {"at", 166.0}, {"attempt", 2}, {"code", 137}}};
  ledger.insert(ledger.begin() + 5, between.begin(), between.end());
  return ledger;
}

TEST(EttrLedgerTest, account_startThatDiedInItsSetUp) {
  const EttrAccount account = account_of(killed_twice(30), 9999);

  EXPECT_DOUBLE_EQ(account.productive_s, 140);
  EXPECT_DOUBLE_EQ(account.replayed_s, 20);
  EXPECT_DOUBLE_EQ(account.startup_s, 7 + 3 + 2);
  EXPECT_DOUBLE_EQ(account.detection_s, 1.5 + 1);
  EXPECT_DOUBLE_EQ(account.idle_s, 1.5 + 2);
  EXPECT_NEAR(account.other_s, 201 - 140 - 20 - 12 - 3 - 6 - 6 - 2.5 - 3.5, 1e-9);
  EXPECT_EQ(account.failures, 2);
}

// Its steps are in the weights and must not be counted as time to notice its failure too.
TEST(EttrLedgerTest, account_provenStepsBeforeAStartThatDiedInItsSetUp) {
  const EttrAccount account = account_of(killed_twice(51), 9999);

  EXPECT_DOUBLE_EQ(account.replayed_s, 0);
  EXPECT_DOUBLE_EQ(account.detection_s, 0.5 + 1);
  EXPECT_NEAR(account.other_s, 201 - 140 - 12 - 3 - 6 - 6 - 1.5 - 3.5, 1e-9);
}

TEST(EttrLedgerTest, account_lastStartDiedInItsSetUp) {
  std::vector<json> ledger = killed_once();
  ledger.erase(ledger.begin() + 6, ledger.begin() + 8);  // nothing of the second start but its end
  ledger.back()["code"] = 137;

  const EttrAccount account = account_of(ledger, 9999);

  EXPECT_DOUBLE_EQ(account.productive_s, 50);
  EXPECT_DOUBLE_EQ(account.replayed_s, 0) << "nobody has trained anything again";
  EXPECT_DOUBLE_EQ(account.startup_s, 7 + 138);
}

// The run has ended long ago; a start that is not allowed to take its directory is none of it.
TEST(EttrLedgerTest, account_startThatWasTurnedAway) {
  const EttrAccount before = account_of(killed_once(), 9999);
  for (const int code : {2, 0}) {
    std::vector<json> ledger = killed_once();
    ledger.push_back({{"event", "launched"}, {"at", 5000.0}, {"attempt", 1}});
    ledger.push_back({{"event", "ended"}, {"at", 5001.0}, {"attempt", 1}, {"code", code}});

    const EttrAccount account = account_of(ledger, 9999);

    EXPECT_DOUBLE_EQ(account.wall_s, before.wall_s) << code;
    EXPECT_EQ(account.starts, 2) << code;
    EXPECT_EQ(account.failures, 1) << code;
  }
}

TEST(EttrLedgerTest, account_linesInAnyOrder) {
  std::vector<json> shuffled = killed_once();
  std::reverse(shuffled.begin(), shuffled.end());
  shuffled.push_back({{"event", "unknown"}, {"at", 1.0}});
  shuffled.push_back({{"note", 1}});

  EXPECT_DOUBLE_EQ(account_of(shuffled, 9999).replayed_s, 20);
  EXPECT_DOUBLE_EQ(account_of(shuffled, 9999).wall_s, 201);
}

TEST(EttrLedgerTest, settleClocks_timeOfDayThatIsSetBack) {
  std::vector<json> ledger = killed_once();
  for (std::size_t i = 0; i < ledger.size(); ++i) {
    ledger[i]["boot"] = "0a1b2c3d";
    ledger[i]["up_s"] = ledger[i]["at"].get<double>() - 40;
    if (i >= 3) ledger[i]["at"] = ledger[i]["at"].get<double>() - 3600;
  }
  EXPECT_NE(account_of(ledger, 9999).wall_s, 201);

  settle_clocks(ledger);

  EXPECT_NEAR(account_of(ledger, 9999).wall_s, 201, 1e-9);
  EXPECT_NEAR(account_of(ledger, 9999).idle_s, 1.5, 1e-9);
}

// The same under a supervisor that numbers its starts, on another host than rank 0, whose clock is
// `shift_s` ahead.
std::vector<json> killed_once_elsewhere(double shift_s) {
  std::vector<json> ledger = killed_once();
  int attempt = 0;
  for (json& line : ledger) {
    const bool of_supervisor = line["event"] == "launched" || line["event"] == "ended";
    if (line["event"] == "launched") ++attempt;
    line["supervisor"] = "s";
    line["attempt"] = attempt;
    line["boot"] = of_supervisor ? "00000000" : "11111111";
    if (!of_supervisor) line["at"] = line["at"].get<double>() + shift_s;
  }
  return ledger;
}

TEST(EttrLedgerTest, account_hostWithAnotherTimeOfDay) {
  for (const double shift_s : {-20.0, 50.0}) {
    const EttrAccount account = account_of(killed_once_elsewhere(shift_s), 9999);

    EXPECT_EQ(account.starts, 2) << shift_s;
    EXPECT_EQ(account.failures, 1) << shift_s;
    EXPECT_DOUBLE_EQ(account.wall_s, 201) << shift_s;
    EXPECT_DOUBLE_EQ(account.productive_s, 140) << shift_s;
    EXPECT_DOUBLE_EQ(account.replayed_s, 20) << shift_s;
    EXPECT_DOUBLE_EQ(account.idle_s, 1.5) << shift_s;
    // The run lies between its launch and its end; where in there, no clock says.
    EXPECT_NEAR(account.startup_s + account.detection_s, 14 + 2.5, 1e-9) << shift_s;
    EXPECT_NEAR(account.startup_s, 14, 3 + 1.5) << shift_s;
  }
}

TEST(EttrLedgerTest, account_clocksThatAgreeAreLeftAlone) {
  const EttrAccount account = account_of(killed_once_elsewhere(0), 9999);

  EXPECT_DOUBLE_EQ(account.startup_s, 14);
  EXPECT_DOUBLE_EQ(account.detection_s, 2.5);
}

TEST(EttrLedgerTest, account_supervisorsCountEachFromOne) {
  std::vector<json> ledger = killed_once_elsewhere(0);
  for (std::size_t i = 5; i < ledger.size(); ++i) {
    ledger[i]["supervisor"] = "of the job's next start";
    ledger[i]["attempt"] = 1;
  }

  EXPECT_EQ(account_of(ledger, 9999).starts, 2);
  EXPECT_DOUBLE_EQ(account_of(ledger, 9999).replayed_s, 20);
}

TEST(EttrLedgerTest, settleClocks_linesWithoutABoot) {
  std::vector<json> ledger = killed_once();

  settle_clocks(ledger);

  EXPECT_EQ(ledger, killed_once());
}

TEST(EttrLedgerTest, account_withoutASupervisor) {
  json finished = progress(30, 18);
  finished["event"] = "finished";
  finished["code"] = 75;
  const EttrAccount account = account_of(
      {{{"event", "started"}, {"at", 12.0}, {"training_s", 0}, {"startup_s", 2}, {"restore_s", 0}},
       finished},
      9999);

  EXPECT_DOUBLE_EQ(account.wall_s, 20);
  EXPECT_DOUBLE_EQ(account.startup_s, 2);
  EXPECT_DOUBLE_EQ(account.productive_s, 18);
  EXPECT_EQ(account.failures, 0) << "preempted is no failure";
  EXPECT_FALSE(account.mtbf_s());
}

TEST(EttrLedgerTest, account_rollbackIsReplayed) {
  const EttrAccount account = account_of(
      {{{"event", "started"}, {"at", 0.0}, {"training_s", 0}, {"startup_s", 0}, {"restore_s", 0}},
       progress(10, 10),
       progress(12, 4),
       progress(20, 12)},
      20);

  EXPECT_DOUBLE_EQ(account.productive_s, 12);
  EXPECT_DOUBLE_EQ(account.replayed_s, 6);
}

TEST(EttrLedgerTest, account_nothing) { EXPECT_EQ(account_of({}, 10).ettr(), 0); }

TEST(EttrLedgerTest, ledger_writesWhatTheAccountReads) {
  const core::ScratchFolder scratch;
  EttrLedger ledger(scratch / "ettr.jsonl", {.attempt = 1}, {.step = 0}, 0.25);
  ledger.progress({.step = 3, .training_s = 0.1}, EttrLedger::When::kEveryFewSeconds);
  ledger.progress({.step = 4, .training_s = 0.2, .stall_s = 0.5}, EttrLedger::When::kNow);
  ledger.finished({.step = 5, .training_s = 0.3, .stall_s = 0.5}, 0);

  const auto lines = read_json_lines(scratch / "ettr.jsonl");
  ASSERT_EQ(lines.size(), 3U) << "the first progress came too early";
  const FoundAccount found = ledger.account();
  ASSERT_TRUE(found.account.has_value());
  EXPECT_DOUBLE_EQ(found.account->productive_s, 0.3);
  EXPECT_DOUBLE_EQ(found.account->checkpoint_stall_s, 0.5);
  EXPECT_GE(found.account->startup_s, 0);  // the system counts hundredths of seconds
}

void write_ledger(const std::filesystem::path& path, const std::vector<json>& lines) {
  std::ofstream file(path);
  for (const json& line : lines) file << line.dump() << "\n";
}

TEST(EttrLedgerTest, readAccount_ofAFile) {
  const core::ScratchFolder scratch;
  write_ledger(scratch / "ettr.jsonl", killed_once());

  const FoundAccount found = read_account(scratch / "ettr.jsonl");

  EXPECT_THAT(found.faults, IsEmpty());
  ASSERT_TRUE(found.account.has_value());
  EXPECT_DOUBLE_EQ(found.account->productive_s, 140);
  EXPECT_DOUBLE_EQ(found.account->checkpoint_stall_s, 6);
}

TEST(EttrLedgerTest, readAccount_noFile) {
  const core::ScratchFolder scratch;
  const FoundAccount found = read_account(scratch / "ettr.jsonl");
  EXPECT_FALSE(found.account.has_value());
  EXPECT_THAT(found.faults, IsEmpty());
}

TEST(EttrLedgerTest, readAccount_linesWhoseFiguresCannotBeAreLeftOutAndTold) {
  const core::ScratchFolder scratch;
  std::vector<json> ledger = killed_once();
  const auto size = ledger[0].dump().size() + ledger[1].dump().size() + 2;
  ledger.insert(ledger.begin() + 2, progress(130, -5));
  ledger.insert(ledger.begin() + 3, progress(131, 1e300));
  ledger.push_back(progress(302, 141, 0, 0));
  ledger.back()["evaluation_s"] = "long";
  write_ledger(scratch / "ettr.jsonl", ledger);

  const FoundAccount found = read_account(scratch / "ettr.jsonl");

  EXPECT_THAT(found.faults,
              ElementsAre((scratch / "ettr.jsonl").string() + ", byte " + std::to_string(size) +
                          ": expected a line of the ledger with a number from 0 to 1e+09 as "
                          "\"training_s\", found -5.0: this line is left out, and 2 more"));
  ASSERT_TRUE(found.account.has_value());
  EXPECT_DOUBLE_EQ(found.account->wall_s, 201);
  EXPECT_DOUBLE_EQ(found.account->productive_s, 140);
}

TEST(EttrLedgerTest, readAccount_aLineThatIsNoObjectIsToldAndLeftOut) {
  const core::ScratchFolder scratch;
  write_ledger(scratch / "ettr.jsonl", killed_once());
  std::ofstream(scratch / "ettr.jsonl", std::ios::app) << "\x01\xFE[0\n";

  const FoundAccount found = read_account(scratch / "ettr.jsonl");

  EXPECT_THAT(
      found.faults,
      ElementsAre(HasSubstr("expected a line of the ledger, found no JSON object: this line")));
  ASSERT_TRUE(found.account.has_value());
  EXPECT_EQ(found.account->starts, 2);
}

TEST(EttrLedgerTest, readAccount_aLineWithoutItsTimeIsLeftOut) {
  const core::ScratchFolder scratch;
  std::vector<json> ledger = killed_once();
  ledger.push_back({{"event", "launched"}});
  write_ledger(scratch / "ettr.jsonl", ledger);

  const FoundAccount found = read_account(scratch / "ettr.jsonl");

  EXPECT_THAT(found.faults, ElementsAre(HasSubstr("as \"at\", found none: this line is left out")));
  ASSERT_TRUE(found.account.has_value());
  EXPECT_EQ(found.account->starts, 2);
}

TEST(EttrLedgerTest, readAccount_whatIsNoFileIsAnError) {
  const core::ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "ettr.jsonl");
  EXPECT_THROW(read_account(scratch / "ettr.jsonl"), core::Error);
}

// Of killed_once() with one sum more than its time holds.
FoundAccount account_with(const char* sum, double seconds) {
  const core::ScratchFolder scratch;
  std::vector<json> ledger = killed_once();
  ledger[7][sum] = seconds;
  write_ledger(scratch / "ettr.jsonl", ledger);
  return read_account(scratch / "ettr.jsonl");
}

TEST(EttrLedgerTest, readAccount_moreSavingThanTime) {
  const FoundAccount found = account_with("stall_s", 9e8);

  EXPECT_FALSE(found.account.has_value());
  EXPECT_THAT(found.faults, ElementsAre(HasSubstr("9e+08 s of all kinds within 201 s cannot be")));
}

TEST(EttrLedgerTest, readAccount_moreTrainingThanTime) {
  const FoundAccount found = account_with("training_s", 5000);

  EXPECT_FALSE(found.account.has_value());
  EXPECT_THAT(found.faults, ElementsAre(HasSubstr("5e+03 s of training and ")));
}

TEST(EttrLedgerTest, describe_oneLine) {
  EXPECT_EQ(describe(account_of(killed_once(), 0)),
            "effective training time 69.7 % of 201 s, start-up 14.0 s, restoring 3.0 s, saving 6.0 "
            "s, evaluating 6.0 s, trained again 20.0 s, noticing failures 2.5 s, idle 1.5 s, other "
            "8.0 s; 2 starts, 1 failure");
}

// The share of wall time that a save every so often leaves to training that is not done again.
double share_of_training(double interval_s, double stall_s, double mtbf_s) {
  return (1 - stall_s / (interval_s + stall_s)) * (1 - interval_s / 2 / mtbf_s);
}

TEST(CheckpointIntervalTest, young_losesLeast) {
  const double young_s = checkpoint::young_interval_s(2, 3600);

  EXPECT_DOUBLE_EQ(young_s, 120);
  for (const double other_s : {60.0, 240.0})
    EXPECT_LT(share_of_training(other_s, 2, 3600), share_of_training(young_s, 2, 3600));
}

TEST(CheckpointIntervalTest, advised_isNotShorterThanASave) {
  EXPECT_NEAR(checkpoint::advised_interval_s(0.162, 13.2, 75), 13.2, 1e-9);
  EXPECT_NEAR(checkpoint::advised_interval_s(0.162, 0.5, 75), 4.93, 0.01);
}

}  // namespace
}  // namespace sidestream::launch
