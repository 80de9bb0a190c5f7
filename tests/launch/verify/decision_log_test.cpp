// What a line of the decision log holds, and which lines are trials made before.
#include "launch/verify/decision_log.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/file.hpp"
#include "tests/core/base/nested_json.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

class DecisionLogTest : public ::testing::Test {
 protected:
  void add(const std::filesystem::path& reports, const std::string& fresh_flags,
           Subject subject = Subject::kVerification) {
    append_decision(log(), reports, {.settings = {.fresh_flags = fresh_flags}}, {}, subject);
  }
  nlohmann::json last_line() const {
    std::ifstream input(log());
    nlohmann::json last;
    for (std::string line; std::getline(input, line);) last = nlohmann::json::parse(line);
    return last;
  }
  std::filesystem::path log() const { return scratch_ / "decisions.jsonl"; }

  core::ScratchFolder scratch_;
};

TEST_F(DecisionLogTest, a_verification_and_its_proof_are_no_trials_before_it) {
  for (const char* name : {"report", "report/"}) {
    add(scratch_ / name / "runs" / "proof", "--fix-batch on");  // as logs of before have it
    add(scratch_ / name, "--fix-batch on", Subject::kProof);
    add(scratch_ / name, "--overlap on");
  }
  add(scratch_ / "reported_before", "--zero 1");

  for (const char* name : {"report", "report/"}) {
    const std::vector<verify::Trial> trials = read_decisions(log(), scratch_ / name);
    ASSERT_EQ(trials.size(), 1u) << name;
    EXPECT_EQ(trials.front().fresh_flags, "--zero 1");
  }
}

TEST_F(DecisionLogTest, a_proof_is_marked_and_names_the_folder_of_the_reports) {
  add(scratch_ / "report", "--fix-batch on", Subject::kProof);
  const nlohmann::json proof = last_line();
  add(scratch_ / "report", "--overlap on");

  EXPECT_EQ(proof.at("reports"), (scratch_ / "report").string());
  EXPECT_EQ(proof.at("proof"), true);
  EXPECT_EQ(last_line().at("reports"), proof.at("reports"));
  EXPECT_EQ(last_line().at("proof"), false);
  EXPECT_EQ(read_decisions(log(), scratch_ / "another").size(), 2u) << "one hides the other";
}

TEST_F(DecisionLogTest, the_same_decision_again_is_no_second_line) {
  for (const char* flags : {"--overlap on", "--overlap on", "--zero 1", "--overlap on"})
    add(scratch_ / "report", flags);
  add(scratch_ / "another", "--overlap on");
  add(scratch_ / "report", "--overlap on");

  std::ifstream input(log());
  std::vector<std::string> flags;
  for (std::string line; std::getline(input, line);)
    flags.push_back(nlohmann::json::parse(line).at("new"));
  EXPECT_EQ(flags,
            (std::vector<std::string>{"--overlap on", "--zero 1", "--overlap on", "--overlap on"}));
}

TEST_F(DecisionLogTest, a_line_after_a_deep_and_a_torn_one_is_read) {
  std::ofstream(log()) << R"({"reports": )" << core::nested_json() << "}\n{\"time\": \"2026-";
  add(scratch_ / "report", "--overlap on");

  EXPECT_EQ(read_decisions(log(), scratch_ / "another").size(), 1u);
}

TEST_F(DecisionLogTest, a_rejection_has_version_and_environment) {
  append_rejection(log(), scratch_ / "a",
                   {.version = "0.1.0", .environment = {{"processor", "P"}}, .reason = "it fails"});

  EXPECT_EQ(last_line().at("version"), "0.1.0");
  EXPECT_EQ(last_line().at("environment").at("processor"), "P");
}

TEST_F(DecisionLogTest, lines_that_are_no_decisions_hide_none) {
  core::write_file_atomically(log(), R"({"verdict":1,"reports":5}
{"verdict":"faster","reports":"/r","accepted":"yes"}
)");
  append_rejection(log(), scratch_ / "a", {.reason = "it fails"});

  EXPECT_EQ(read_decisions(log(), scratch_ / "b").size(), 1u);
}

TEST_F(DecisionLogTest, a_rejection_has_its_reason) {
  append_rejection(log(), scratch_ / "a",
                   {.settings = {.fresh_flags = "--lr 1000"}, .reason = "it learns worse"});

  const std::vector<verify::Trial> trials = read_decisions(log(), scratch_ / "b");

  ASSERT_EQ(trials.size(), 1u);
  EXPECT_FALSE(trials.front().accepted);
  EXPECT_EQ(trials.front().reason, "it learns worse");
  EXPECT_EQ(trials.front().fresh_flags, "--lr 1000");
}

}  // namespace
}  // namespace sidestream::launch
