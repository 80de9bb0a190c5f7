#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "profiling/verify/comparability.hpp"
#include "tests/core/base/nested_json.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/verify/run_maker.hpp"

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRecord = R"({"schema": 1, "version": "0.1.0", "build": "b",
  "machine": {"processor": "P", "nodes": 1}, "command_line": "sidestream train", "world_size": 2,
  "threads_per_rank": 1, "backend": "mpi", "precision": "fp32", "parameters": 10, "exit_code": 0,
  "performance": {"steps": 2, "step_ms_p50": 2, "tokens_per_s": 9, "exposed_comm_ms_p50": 0.5,
                  "reader_cost_ms_p50": 0.1}})";
constexpr const char* kMetrics =
    R"({"step":1,"loss":5.5,"batch_cost_s":0.1,"reader_cost_s":0.01,"memory_bytes":7}
{"step":2,"loss":null,"batch_cost_s":0.2,"reader_cost_s":0.02,"memory_bytes":9,"val_loss":5.25}
{"step":3,"lo)";

class RecordedRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder() / "run.json", kRecord);
    write_file(folder() / "config.cfg",
               "model = gpt2-mini  # the small one\n# layers = 3\n\nlr=1\n");
    write_file(folder() / "metrics.jsonl", kMetrics);
  }
  const std::filesystem::path& folder() const { return scratch_.path(); }
  std::string error_of_reading() const {
    try {
      read_recorded_run(folder());
    } catch (const core::DataError& error) {
      return error.what();
    }
    return "no error";
  }
  core::ScratchFolder scratch_;
};

TEST_F(RecordedRunTest, everything_is_read_and_a_torn_line_left_out) {
  const RecordedRun run = read_recorded_run(folder());

  EXPECT_EQ(run.config, (std::map<std::string, std::string>{{"model", "gpt2-mini"}, {"lr", "1"}}));
  EXPECT_EQ(run.environment.at("world_size"), "2");
  EXPECT_EQ(run.version, "0.1.0");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.exposed_comm_ms, 0.5);
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_DOUBLE_EQ(run.steps[0].step_ms, 100);
  EXPECT_DOUBLE_EQ(run.steps[1].reader_ms, 20);
  EXPECT_EQ(run.steps[1].memory_bytes, 9);
  EXPECT_EQ(run.steps[1].val_loss, 5.25);
  EXPECT_TRUE(std::isnan(run.steps[1].loss));
  EXPECT_EQ(run.data.train, "");
}

TEST_F(RecordedRunTest, values_of_config_are_those_that_the_trainer_reads) {
  write_file(folder() / "config.cfg",
             "init = w#1  # a folder\ndata = \"d # x\"\ntokenizer = \"t\" # comment\n");

  EXPECT_EQ(
      read_config(folder() / "config.cfg"),
      (std::map<std::string, std::string>{{"init", "w#1"}, {"data", "d # x"}, {"tokenizer", "t"}}));
  write_file(folder() / "config.cfg", "a = 1\ndata = \"d\n");
  EXPECT_THAT(error_of_reading(), HasSubstr("config.cfg:2: data: expected one value"));
}

TEST_F(RecordedRunTest, fingerprints_of_the_data_are_read) {
  std::string record = kRecord;
  record.insert(1, R"("data": {"train_fingerprint": "1f", "validation_fingerprint": null},)");
  write_file(folder() / "run.json", record);
  const RecordedRun run = read_recorded_run(folder());
  EXPECT_EQ(run.data.train, "1f");
  EXPECT_EQ(run.data.validation, "");
}

TEST_F(RecordedRunTest, an_evaluation_without_a_number_is_not_a_missing_one) {
  write_file(folder() / "metrics.jsonl",
             R"({"step":1,"loss":5,"batch_cost_s":1,"reader_cost_s":0,"val_loss":null})"
             "\n");
  const RecordedRun run = read_recorded_run(folder());

  ASSERT_TRUE(run.steps.at(0).val_loss);
  EXPECT_TRUE(std::isnan(*run.steps[0].val_loss));
}

TEST_F(RecordedRunTest, another_gpu_or_driver_is_another_machine) {
  const auto on = [&](const std::string& gpu, const std::string& driver) {
    std::string record = kRecord;
    const std::string before = R"("nodes": 1)";
    record.replace(record.find(before), before.size(),
                   before + R"(, "gpu": )" + gpu + R"(, "gpu_driver": )" + driver);
    write_file(folder() / "run.json", record);
    return read_recorded_run(folder());
  };
  const RecordedRun h100 = on("\"H100\"", "\"1\""), h200 = on("\"H200\"", "\"1\"");

  EXPECT_EQ(refusal_text(differences_of(h100, h200)), "gpu is H100 and H200");
  EXPECT_THAT(refusal_text(differences_of(h100, on("\"H100\"", "\"2\""))),
              HasSubstr("gpu_driver is 1 and 2"));
  EXPECT_EQ(refusal_text(differences_of(on("null", "null"), on("null", "null"))), "");
}

TEST_F(RecordedRunTest, a_run_that_is_there_twice_is_refused_copied_too) {
  const RecordedRun run{.folder = folder()}, other{.folder = folder() / "other"};
  EXPECT_THROW(refuse_repeated({run, other, {.folder = folder() / "."}}), core::ConfigError);
  EXPECT_NO_THROW(refuse_repeated({run, other}));
  std::string record = kRecord;
  record.insert(1, R"("started_at": "2026-01-02T03:04:05Z",)");
  for (const char* name : {"a", "b"}) {
    write_file(folder() / name / "run.json", record);
    write_file(folder() / name / "config.cfg", "seed = 1\n");
    write_file(folder() / name / "metrics.jsonl", "");
  }
  EXPECT_THROW(
      refuse_repeated({read_recorded_run(folder() / "a"), read_recorded_run(folder() / "b")}),
      core::ConfigError);
}

TEST_F(RecordedRunTest, what_is_nested_deeply_is_refused) {
  write_file(folder() / "metrics.jsonl", "{\"step\":" + core::nested_json() + "}\n");
  EXPECT_THAT(error_of_reading(), HasSubstr("metrics.jsonl, byte 0: expected at most 32 nested"));
  write_file(folder() / "run.json", "{\"world_size\":" + core::nested_json() + "}");
  EXPECT_THAT(error_of_reading(), HasSubstr("run.json: expected at most 32 nested levels"));
}

TEST_F(RecordedRunTest, what_is_wrong_is_named_with_its_place) {
  write_file(folder() / "metrics.jsonl", "{\"step\":1}\n");
  EXPECT_THAT(error_of_reading(), HasSubstr("metrics.jsonl, byte 0: expected a line of metrics"));
  const std::string line = R"({"step":1,"loss":5,"batch_cost_s":1,"reader_cost_s":0})"
                           "\n";
  write_file(folder() / "metrics.jsonl", line + "{\"step\":2,\n");
  EXPECT_THAT(
      error_of_reading(),
      HasSubstr("byte " + std::to_string(line.size() + 10) +
                ": expected a line of metrics as one JSON object in line 2, found its end"));
  write_file(folder() / "config.cfg", "a = 1\nnonsense\n");
  EXPECT_THAT(error_of_reading(), HasSubstr("config.cfg:2: expected `name = value`"));
  write_file(folder() / "run.json", "{}");
  EXPECT_THAT(
      error_of_reading(),
      ::testing::AllOf(HasSubstr("run.json: expected the record of a run"),
                       HasSubstr("found no 'world_size'"), ::testing::Not(HasSubstr("exception"))));
  write_file(folder() / "run.json", "{\"world_size\": 2,\n nonsense}");
  EXPECT_THAT(error_of_reading(), HasSubstr("run.json, byte"));
  EXPECT_THAT(error_of_reading(), HasSubstr("onsense}'"));
  std::filesystem::remove(folder() / "run.json");
  EXPECT_THAT(error_of_reading(), HasSubstr("A run directory holds"));
}

TEST_F(RecordedRunTest, figures_that_cannot_be_are_refused_with_their_place) {
  const std::string line = R"({"step":1,"loss":5,"batch_cost_s":1,"reader_cost_s":0})"
                           "\n";
  write_file(folder() / "metrics.jsonl",
             line + R"({"step":2,"loss":5,"batch_cost_s":-5,"reader_cost_s":0})"
                    "\n");
  EXPECT_THAT(error_of_reading(),
              HasSubstr("metrics.jsonl, byte " + std::to_string(line.size()) +
                        ": expected a line of metrics as one JSON object in line 2 with a number "
                        "from 0 to 1e+09 as \"batch_cost_s\", found -5"));
  write_file(folder() / "metrics.jsonl",
             R"({"step":1.5,"loss":5,"batch_cost_s":1,"reader_cost_s":0})"
             "\n");
  EXPECT_THAT(error_of_reading(), HasSubstr("with a whole number as \"step\", found 1.5"));
  write_file(folder() / "metrics.jsonl", R"({"step":1,"loss":5,"batch_cost_s":1,"reader_cost_s":2})"
                                         "\n");
  EXPECT_THAT(error_of_reading(), HasSubstr("from 0 to 1.0101 as \"reader_cost_s\", found 2"));
  write_file(folder() / "metrics.jsonl", line);
  std::string record = kRecord;
  record.replace(record.find("\"tokens_per_s\": 9"), 17, "\"tokens_per_s\": -1e12");
  write_file(folder() / "run.json", record);
  EXPECT_THAT(error_of_reading(), HasSubstr("as \"tokens_per_s\", found -1"));
}

TEST(TypicalStepTest, warm_up_is_left_out_of_times_but_not_of_memory) {
  const auto typical = typical_step(make_run({.step_ms = 50, .reader_ms = 2}), 3);

  EXPECT_EQ(typical->steps, 17);
  EXPECT_DOUBLE_EQ(typical->step_ms, 50);
  EXPECT_DOUBLE_EQ(typical->reader_ms, 2);
  EXPECT_EQ(typical->peak_memory_bytes, 1'000'000);
  EXPECT_FALSE(typical_step(make_run({.steps = 3}), 3));
}

TEST(MedianTest, of_even_and_odd_numbers) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
  EXPECT_THROW(median_of({}), core::Error);
}

TEST(ComparabilityTest, models_data_and_ranks_are_refused_and_toggles_are_the_subject) {
  RecordedRun base = make_run({}), fresh = make_run({});
  fresh.config["overlap"] = "off";
  fresh.config["width"] = "96";
  fresh.config["run-dir"] = "elsewhere";
  fresh.environment["world_size"] = "4";
  fresh.version = "2";

  const auto found = differences_of(base, fresh);

  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].field, "overlap");
  EXPECT_EQ(found[0].kind, DifferenceKind::kSubject);
  EXPECT_EQ(found[1].field, "version");
  EXPECT_EQ(found[1].kind, DifferenceKind::kEnvironment);
  EXPECT_EQ(refusal_text(found),
            "version is 1 and 2, width is not set and 96, world_size is 2 and 4");
  EXPECT_FALSE(same_training(found));
}

TEST(ComparabilityTest, another_machine_or_build_withholds_the_figure) {
  RecordedRun base = make_run({}), fresh = make_run({});
  fresh.environment["processor"] = "another";
  base.environment["build"] = "a page of text";
  fresh.environment["build"] = "another page";
  EXPECT_EQ(refusal_text(differences_of(base, fresh)),
            "build is not the same, processor is one and another");
  fresh = base;
  fresh.environment["threads_per_rank"] = "4";  // follows from a flag
  EXPECT_EQ(refusal_text(differences_of(base, fresh)), "");
}

TEST(ComparabilityTest, data_is_what_was_read_and_not_where_it_lay) {
  const auto run = [](const std::string& folder, const DataFingerprints& data) {
    RecordedRun one = make_run({});
    one.config["data"] = folder;
    one.data = data;
    return one;
  };
  const RecordedRun base = run("a", {.train = "1", .validation = "2"});

  const auto moved = differences_of(base, run("b", base.data));
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].kind, DifferenceKind::kEnvironment);
  EXPECT_EQ(refusal_text(moved), "");
  EXPECT_TRUE(same_training(moved));

  EXPECT_EQ(refusal_text(differences_of(base, run("a", {.train = "3", .validation = "2"}))),
            "data is a (fingerprint 1) and a (fingerprint 3)");
  EXPECT_EQ(
      refusal_text(differences_of(base, run("b", {.train = "1", .validation = "4"}))),
      "data is a (fingerprint 2 of validation data) and b (fingerprint 4 of validation data)");
  EXPECT_EQ(refusal_text(differences_of(base, run("b", {}))), "data is a and b");  // not known
  EXPECT_EQ(refusal_text(differences_of(base, run("a", {}))), "");
}

TEST(ComparabilityTest, a_run_that_failed_or_stopped_is_no_block_beside_one_that_did_not) {
  RecordedRun base = make_run({}), fresh = make_run({});
  base.last_step = fresh.last_step = 20;
  EXPECT_EQ(refusal_text(differences_of(base, fresh)), "");
  fresh.exit_code = 9;
  fresh.last_step = 10;
  EXPECT_EQ(refusal_text(differences_of(base, fresh)),
            "exit_code is 0 and 9, last_step is 20 and 10");
  fresh.exit_code.reset();
  fresh.last_step = 20;
  EXPECT_EQ(refusal_text(differences_of(base, fresh)), "exit_code is 0 and not there");
}

TEST(ComparabilityTest, toggles_learn_the_same_and_another_rate_does_not) {
  const std::map<std::string, std::string> base = {{"overlap", "on"}}, fresh = {{"overlap", "off"}};
  EXPECT_TRUE(same_training(differences_of(base, fresh)));
  EXPECT_TRUE(refusal_text(differences_of(base, fresh)).empty());
  EXPECT_FALSE(same_training(differences_of(base, {{"overlap", "on"}, {"lr", "2"}})));
}

}  // namespace
}  // namespace sidestream::verify
