// Which lines of the decision log are trials made before.
#include "launch/verify/decision_log.hpp"

#include <gtest/gtest.h>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

class DecisionLogTest : public ::testing::Test {
 protected:
  void add(const std::filesystem::path& reports, const std::string& fresh_flags) {
    append_decision(log(), reports, {.settings = {.fresh_flags = fresh_flags}}, {});
  }
  std::filesystem::path log() const { return scratch_ / "decisions.jsonl"; }

  core::ScratchFolder scratch_;
};

TEST_F(DecisionLogTest, a_verification_and_its_proof_are_no_trials_before_it) {
  for (const char* name : {"report", "report/"}) {
    add(scratch_ / name / "runs" / "proof", "--fix-batch on");
    add(scratch_ / name, "--overlap on");
  }
  add(scratch_ / "reported_before", "--zero 1");

  for (const char* name : {"report", "report/"}) {
    const std::vector<verify::Trial> trials = read_decisions(log(), scratch_ / name);
    ASSERT_EQ(trials.size(), 1u) << name;
    EXPECT_EQ(trials.front().fresh_flags, "--zero 1");
  }
}

TEST_F(DecisionLogTest, a_rejection_has_its_reason) {
  append_rejection(log(), scratch_ / "a", {.fresh_flags = "--lr 1000"}, "it learns worse");

  const std::vector<verify::Trial> trials = read_decisions(log(), scratch_ / "b");

  ASSERT_EQ(trials.size(), 1u);
  EXPECT_FALSE(trials.front().accepted);
  EXPECT_EQ(trials.front().reason, "it learns worse");
  EXPECT_EQ(trials.front().fresh_flags, "--lr 1000");
}

}  // namespace
}  // namespace sidestream::launch
