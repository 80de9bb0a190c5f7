#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/options/bench_options.hpp"
#include "launch/options/command_table.hpp"
#include "launch/options/doctor_options.hpp"
#include "launch/options/generate_options.hpp"
#include "launch/options/nearest_name.hpp"
#include "launch/options/prepare_options.hpp"
#include "launch/options/summary_options.hpp"
#include "launch/options/train_parser.hpp"
#include "tests/launch/options/config_error.hpp"

namespace sidestream::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using CommandWords = std::vector<const char*>;

Invocation invoke(CommandWords words) {
  words.insert(words.begin(), "sidestream");
  return parse_invocation(static_cast<int>(words.size()), words.data(), "version 1");
}

TEST(PrepareOptionsTest, parse_lists_may_be_long_and_repeated) {
  const PrepareOptions options =
      parse_prepare_options({"--input", "a", "b", "--input", "c", "--include", "*.hpp", "--output",
                             "out", "--tokenizer", "tok.json", "--val-fraction", "0.1",
                             "--shard-tokens", "1000", "--threads", "2", "--seed", "5"});

  EXPECT_THAT(options.inputs, ElementsAre("a", "b", "c"));
  EXPECT_THAT(options.include, ElementsAre("*.hpp"));
  EXPECT_EQ(
      std::tie(options.output, options.tokenizer, options.val_fraction, options.shard_tokens,
               options.threads, options.seed),
      std::make_tuple(std::filesystem::path("out"), "tok.json", 0.1, 1000, std::optional(2), 5u));
}

TEST(PrepareOptionsTest, parse_missing_parts_are_named) {
  EXPECT_THAT(config_error_of([] {
                parse_prepare_options({"--output", "o"});
              }),
              HasSubstr("--input is missing"));
  EXPECT_THAT(config_error_of([] {
                parse_prepare_options({"--input", "o"});
              }),
              HasSubstr("--output is missing"));
  EXPECT_THAT(config_error_of([] {
                parse_prepare_options({"--val-fraction", "1"});
              }),
              HasSubstr("from 0 to below 1"));
}

TEST(GenerateOptionsTest, parse_sets_every_member) {
  const GenerateOptions options = parse_generate_options(
      {"--checkpoint", "c", "--prompt", "a b", "--tokens", "3", "--temperature", "0", "--top-k",
       "4", "--seed", "5", "--threads", "6"});

  EXPECT_EQ(std::tie(options.checkpoint, options.prompt, options.tokens, options.temperature,
                     options.top_k, options.seed, options.threads),
            std::make_tuple(std::filesystem::path("c"), "a b", 3, 0.0, 4, 5u, std::optional(6)));
  EXPECT_EQ(parse_generate_options({"--checkpoint", "c", "--prompt", ""}).prompt, "");
  EXPECT_THAT(config_error_of([] { parse_generate_options({}); }),
              HasSubstr("--checkpoint is missing"));
}

TEST(BenchOptionsTest, parse_takes_the_subject_as_a_word) {
  EXPECT_EQ(parse_bench_options({"ceilings", "--threads", "2"}).threads, 2);
  EXPECT_EQ(parse_bench_options({"allreduce"}).subject, BenchSubject::kAllReduce);
  EXPECT_EQ(parse_bench_options({"allgather"}).subject, BenchSubject::kAllGather);
  EXPECT_EQ(parse_bench_options({"reducescatter"}).subject, BenchSubject::kReduceScatter);
  EXPECT_THAT(config_error_of([] { parse_bench_options({}); }), HasSubstr("ceilings"));
  EXPECT_THAT(config_error_of([] {
                parse_bench_options({"--threads", "2"});
              }),
              HasSubstr("what to measure"));
  EXPECT_THAT(config_error_of([] { parse_bench_options({"floors"}); }),
              HasSubstr("expected one of ceilings"));
}

TEST(DoctorOptionsTest, parse_sets_every_member) {
  const DoctorOptions options =
      parse_doctor_options({"--device", "cuda", "--run-dir", "runs/a", "--json", "a.json"});

  EXPECT_EQ(std::tie(options.device, options.run_dir, options.json),
            std::make_tuple(comm::DeviceWish::kCuda, std::filesystem::path("runs/a"),
                            std::filesystem::path("a.json")));
  EXPECT_EQ(parse_doctor_options({}).run_dir, ".");
  EXPECT_THAT(config_error_of([] {
                parse_doctor_options({"--device", "tpu"});
              }),
              HasSubstr("--device"));
  EXPECT_EQ(invoke({"doctor"}).command, Command::kDoctor);
}

TEST(SummaryOptionsTest, folders_need_no_flag) {
  EXPECT_THAT(parse_summary_options({"runs/a", "runs/b"}).runs, ElementsAre("runs/a", "runs/b"));
  EXPECT_THAT(parse_summary_options({"--run", "runs/a", "--run", "runs/b"}).runs,
              ElementsAre("runs/a", "runs/b"));
  EXPECT_THAT(config_error_of([] { parse_summary_options({}); }), HasSubstr("--run is missing"));
}

TEST(CommandLineTest, help_is_among_the_names_that_may_be_meant) {
  EXPECT_THAT(config_error_of([] { parse_summary_options({"--hepl"}); }),
              HasSubstr("unknown flag '--hepl'. Did you mean --help?"));
  EXPECT_THAT(config_error_of([] { parse_train_options({"--hepl"}); }),
              HasSubstr("Did you mean --help?"));
}

TEST(CommandTableTest, parse_invocation_finds_the_command) {
  const Invocation invocation = invoke({"generate", "--tokens", "3"});

  EXPECT_EQ(invocation.action, Invocation::Action::kRun);
  EXPECT_EQ(invocation.command, Command::kGenerate);
  EXPECT_THAT(invocation.arguments, ElementsAre("--tokens", "3"));
}

TEST(CommandTableTest, parse_invocation_prints_help_and_version) {
  EXPECT_EQ(invoke({"--version"}).text, "version 1");
  EXPECT_THROW(invoke({"--version", "train"}), core::ConfigError);
  EXPECT_EQ(invoke({"--help"}).text, top_level_help());
  EXPECT_EQ(invoke({"help"}).text, top_level_help());
  EXPECT_THAT(invoke({"help", "train"}).text, HasSubstr("--grad-accumulation"));
  EXPECT_EQ(invoke({"train", "--steps", "3", "--help"}).text, invoke({"help", "train"}).text);
  EXPECT_EQ(invoke({"train", "--help"}).action, Invocation::Action::kPrintText);
}

TEST(CommandTableTest, parse_invocation_unknown_command_names_the_nearest) {
  EXPECT_THAT(config_error_of([] { invoke({"trian"}); }),
              HasSubstr("unknown command 'trian'. Did you mean train?"));
  EXPECT_THAT(config_error_of([] { invoke({}); }), HasSubstr("no command given"));
}

TEST(NearestNameTest, did_you_mean_is_silent_when_nothing_is_close) {
  const std::vector<std::string> names = {"overlap", "lr", "steps"};

  EXPECT_EQ(did_you_mean("overlpa", names, "--"), " Did you mean --overlap?");
  EXPECT_EQ(did_you_mean("zzzzzzz", names), "");
}

}  // namespace
}  // namespace sidestream::launch
