#include "launch/options/train_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

class TrainParserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("train_parser_test_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& text) const {
    const std::filesystem::path path = folder_ / "train.cfg";
    std::ofstream(path) << text;
    return path.string();
  }

  TrainOptions parse(Arguments arguments) const {
    arguments.insert(arguments.begin(), {"--data", "synthetic"});
    return parse_train_options(arguments);
  }

  std::string error_of(const Arguments& arguments) const {
    try {
      parse_train_options(arguments);
    } catch (const core::ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string error_with_data(Arguments arguments) const {
    arguments.insert(arguments.begin(), {"--data", "synthetic"});
    return error_of(arguments);
  }

  std::filesystem::path folder_;
};

TEST_F(TrainParserTest, parse_nothing_given_has_documented_defaults) {
  const TrainOptions options = parse({});

  EXPECT_EQ(options.data.source, "synthetic");
  EXPECT_EQ(options.precision, Precision::kFp32);
  EXPECT_EQ(options.checkpoint.resume, "none");
  EXPECT_EQ(options.parallel.gradient_sync, parallel::GradientSync::kOverlapped);
  EXPECT_EQ(options.model.config.width, 768);
  EXPECT_FALSE(options.baseline);
  EXPECT_FALSE(options.threads.has_value());
}

TEST_F(TrainParserTest, parse_argc_argv_skips_the_program) {
  const char* argv[] = {"program", "--data", "synthetic", "--steps", "7"};

  EXPECT_EQ(parse_train_options(5, argv).steps, 7);
}

TEST_F(TrainParserTest, parse_every_layer_beats_the_one_below) {
  const std::string config =
      file("steps = 5   # a comment\nlr = 0.5\nprecision = bf16\nloader-workers = 3\n");

  const TrainOptions from_file = parse({"--config", config});
  const TrainOptions with_baseline = parse({"--config", config, "--baseline"});
  const TrainOptions on_top =
      parse({"--baseline", "--precision", "bf16", "--config", config, "--steps", "9"});

  EXPECT_EQ(from_file.steps, 5);
  EXPECT_DOUBLE_EQ(from_file.schedule.lr, 0.5);
  EXPECT_EQ(from_file.data.loader_workers, 3);
  EXPECT_EQ(with_baseline.precision, Precision::kFp32);
  EXPECT_EQ(with_baseline.data.loader_workers, 0);
  EXPECT_EQ(with_baseline.steps, 5);
  EXPECT_EQ(on_top.precision, Precision::kBf16);
  EXPECT_EQ(on_top.steps, 9);
}

TEST_F(TrainParserTest, parse_baseline_switches_every_optimisation_off) {
  const TrainOptions options = parse({"--baseline"});

  EXPECT_TRUE(options.baseline);
  EXPECT_EQ(options.parallel.gradient_sync, parallel::GradientSync::kPerParameter);
  EXPECT_EQ(options.parallel.optimizer.kernel, parallel::OptimizerKernel::kUnfused);
  EXPECT_EQ(options.parallel.parameter_dtype, core::DType::kFloat32);
  EXPECT_EQ(options.model.config.fused_ops, model::FusedOps::kOff);
  EXPECT_EQ(options.data.loader_workers, 0);
  EXPECT_EQ(options.data.prefetch, 0);
  EXPECT_FALSE(options.comm.shared_memory);
}

TEST_F(TrainParserTest, parse_toggles_follow_the_higher_place) {
  using parallel::GradientSync;

  EXPECT_EQ(parse({"--baseline", "--overlap", "on"}).parallel.gradient_sync,
            GradientSync::kOverlapped);
  EXPECT_EQ(parse({"--baseline", "--bucketing", "on"}).parallel.gradient_sync,
            GradientSync::kBucketed);
  EXPECT_EQ(parse({"--bucketing", "off"}).parallel.gradient_sync, GradientSync::kPerParameter);
  EXPECT_EQ(parse({"--overlap", "off"}).parallel.gradient_sync, GradientSync::kBucketed);
  EXPECT_EQ(parse({"--overlap", "off", "--bucketing", "off"}).parallel.gradient_sync,
            GradientSync::kPerParameter);
  EXPECT_EQ(
      parse({"--config", file("bucketing = off\n"), "--overlap", "on"}).parallel.gradient_sync,
      GradientSync::kOverlapped);
  EXPECT_EQ(parse({"--baseline", "--loader-workers", "2"}).data.prefetch, 4);
  EXPECT_EQ(parse({"--baseline", "--prefetch", "3"}).data.loader_workers, 1);
  EXPECT_EQ(parse({"--loader-workers", "0"}).data.prefetch, 0);
}

TEST_F(TrainParserTest, parse_conflicting_flags_name_both) {
  EXPECT_THAT(error_with_data({"--overlap", "on", "--bucketing", "off"}),
              HasSubstr("--overlap on and --bucketing off exclude each other"));
  EXPECT_THAT(error_with_data({"--loader-workers", "2", "--prefetch", "0"}),
              HasSubstr("--loader-workers 2 and --prefetch 0 exclude each other"));
  EXPECT_THAT(error_with_data({"--device", "cpu", "--backend", "nccl"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error_with_data({"--init", "a", "--resume", "b"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error_with_data({"--target-val-loss", "1.5"}), HasSubstr("--eval-every"));
}

TEST_F(TrainParserTest, parse_wrong_names_are_refused_with_the_nearest) {
  EXPECT_THAT(error_with_data({"--overlab", "on"}),
              HasSubstr("unknown flag '--overlab'. Did you mean --overlap?"));
  EXPECT_THAT(error_with_data({"--over", "on"}), HasSubstr("Did you mean --overlap?"));
  EXPECT_THAT(error_with_data({"--check", "1"}), HasSubstr("unknown flag"));
  EXPECT_THAT(error_with_data({"--profile", "x"}), HasSubstr("unknown flag"));
  EXPECT_THAT(error_with_data({"stray"}), HasSubstr("takes flags only"));
  EXPECT_THAT(error_with_data({"-n", "2"}), HasSubstr("takes flags only"));
  EXPECT_THAT(error_with_data({"--steps"}), HasSubstr("--steps: expected a value"));
  EXPECT_THAT(error_with_data({"--steps", "--lr", "1"}),
              HasSubstr("--steps: expected a value, found the flag --lr"));
  EXPECT_THAT(error_with_data({"--lr", "1", "--lr", "1"}), HasSubstr("--lr is given twice"));
}

TEST_F(TrainParserTest, parse_wrong_values_say_what_was_expected) {
  EXPECT_EQ(error_with_data({"--steps", "ten"}),
            "--steps: expected an integer, from 0 to 1000000000, found 'ten'");
  EXPECT_THAT(error_with_data({"--steps", "-1"}), HasSubstr("from 0 to"));
  EXPECT_THAT(error_with_data({"--steps", "1e3"}), HasSubstr("expected an integer"));
  EXPECT_THAT(error_with_data({"--steps", "99999999999999999999"}),
              HasSubstr("expected an integer"));
  EXPECT_THAT(error_with_data({"--lr", "nan"}), HasSubstr("expected a number"));
  EXPECT_THAT(error_with_data({"--beta1", "1"}), HasSubstr("from 0 to below 1, found '1'"));
  EXPECT_THAT(error_with_data({"--overlap", "true"}),
              HasSubstr("--overlap: expected on or off, found 'true'"));
  EXPECT_THAT(error_with_data({"--precision", "fp64"}), HasSubstr("expected one of fp32, bf16"));
  EXPECT_THAT(error_with_data({"--precision", "fp16"}),
              HasSubstr("needs a GPU build and is not there yet"));
  EXPECT_THAT(error_with_data({"--precision", "tf32"}),
              HasSubstr("needs a GPU build and is not there yet"));
  EXPECT_THAT(error_with_data({"--model", "gpt5"}), HasSubstr("gpt2-124m"));
  EXPECT_THAT(error_with_data({"--width", "770"}), HasSubstr("heads"));
  EXPECT_THAT(error_with_data({"--sequence-length", "1025"}), HasSubstr("at most 1024"));
  EXPECT_THAT(error_of({}), HasSubstr("--data is missing"));
}

TEST_F(TrainParserTest, parse_errors_in_a_file_name_the_line) {
  const std::string name = (folder_ / "train.cfg").string();

  EXPECT_EQ(error_with_data({"--config", file("steps = 3\n\nlr = x\n")}),
            name + ":3: lr: expected a number, from 0 to 1000, found 'x'");
  EXPECT_EQ(error_with_data({"--config", file("# c\nstep = 3\n")}),
            name + ":2: unknown key 'step'. Did you mean steps?");
  EXPECT_THAT(error_with_data({"--config", file("lr = 1\nlr = 2\n")}),
              HasSubstr(":2: 'lr' is given twice"));
  EXPECT_THAT(error_with_data({"--config", file("lr 1\n")}),
              HasSubstr(":1: expected 'key = value', found 'lr 1'"));
  EXPECT_THAT(error_with_data({"--config", file("baseline = on\n")}),
              HasSubstr("belongs on the command line"));
  EXPECT_THAT(error_with_data({"--config", file(std::string(2 << 20, '#'))}),
              HasSubstr("train.cfg"));
  EXPECT_THAT(error_with_data({"--config", (folder_ / "absent").string()}), HasSubstr("absent"));
  EXPECT_THAT(error_with_data({"--config", file("overlap = on\nbucketing = off\n")}),
              HasSubstr("exclude each other"));
}

// Every key away from its default, and where it ends up.
TEST_F(TrainParserTest, parse_every_key_sets_its_member) {
  const TrainOptions o = parse_train_options({"--run-dir",
                                              "r",
                                              "--data",
                                              "d # x",
                                              "--tokenizer",
                                              "t",
                                              "--model",
                                              "gpt2-mini",
                                              "--layers",
                                              "3",
                                              "--heads",
                                              "5",
                                              "--width",
                                              "40",
                                              "--vocab-size",
                                              "500",
                                              "--pad-vocab",
                                              "64",
                                              "--sequence-length",
                                              "32",
                                              "--dropout",
                                              "0.25",
                                              "--init",
                                              "i",
                                              "--steps",
                                              "11",
                                              "--seed",
                                              "12",
                                              "--deterministic",
                                              "--shuffle",
                                              "off",
                                              "--fix-batch",
                                              "on",
                                              "--batch-size-per-rank",
                                              "13",
                                              "--grad-accumulation",
                                              "14",
                                              "--precision",
                                              "bf16",
                                              "--algorithm",
                                              "sgd",
                                              "--lr",
                                              "0.15",
                                              "--min-lr-ratio",
                                              "0.16",
                                              "--lr-schedule",
                                              "wsd",
                                              "--warmup-steps",
                                              "17",
                                              "--weight-decay",
                                              "0.18",
                                              "--beta1",
                                              "0.19",
                                              "--beta2",
                                              "0.2",
                                              "--eps",
                                              "0.21",
                                              "--momentum",
                                              "0.22",
                                              "--grad-clip",
                                              "0.23",
                                              "--eval-every",
                                              "24",
                                              "--eval-tokens",
                                              "25",
                                              "--target-val-loss",
                                              "2.6",
                                              "--log-every",
                                              "27",
                                              "--checkpoint-every",
                                              "28",
                                              "--keep-checkpoints",
                                              "29",
                                              "--resume",
                                              "auto",
                                              "--device",
                                              "cpu",
                                              "--backend",
                                              "mpi",
                                              "--threads",
                                              "3",
                                              "--unused-parameters",
                                              "allow",
                                              "--timeout-setup",
                                              "1.5",
                                              "--timeout-step",
                                              "2",
                                              "--timeout-checkpoint",
                                              "3",
                                              "--timeout-eval",
                                              "4",
                                              "--overlap",
                                              "off",
                                              "--bucket-mb",
                                              "3.5",
                                              "--first-bucket-mb",
                                              "0.5",
                                              "--shared-memory",
                                              "off",
                                              "--fused-optimizer",
                                              "off",
                                              "--fused-ops",
                                              "off",
                                              "--reduce-dtype",
                                              "fp32",
                                              "--loader-workers",
                                              "5",
                                              "--prefetch",
                                              "6",
                                              "--flush-denormals",
                                              "off",
                                              "--ranges",
                                              "layers"});
  const parallel::OptimizerConfig& optimizer = o.parallel.optimizer;

  EXPECT_EQ(std::tie(o.run_dir, o.data.source, o.data.tokenizer, o.model.preset, o.model.init),
            std::make_tuple(std::filesystem::path("r"), "d # x", std::filesystem::path("t"),
                            "gpt2-mini", std::filesystem::path("i")));
  const model::ModelConfig& m = o.model.config;
  EXPECT_EQ(std::tie(m.layers, m.heads, m.width, m.vocab_size, m.padded_vocab_size,
                     o.data.sequence_length, m.dropout, m.fused_ops),
            std::make_tuple(3, 5, 40, 500, 512, 32, 0.25, model::FusedOps::kOff));
  EXPECT_EQ(std::tie(o.steps, o.seed, o.deterministic, o.data.shuffle, o.data.fix_batch,
                     o.data.batch_size_per_rank),
            std::make_tuple(11, 12u, true, false, true, 13));
  EXPECT_EQ(std::tie(o.parallel.grad_accumulation, o.precision, o.parallel.parameter_dtype,
                     o.parallel.reduce_dtype),
            std::make_tuple(14, Precision::kBf16, core::DType::kBFloat16,
                            std::optional(core::DType::kFloat32)));
  EXPECT_EQ(
      std::tie(o.schedule.lr, o.schedule.min_lr_ratio, o.schedule.kind, o.schedule.warmup_steps),
      std::make_tuple(0.15, 0.16, "wsd", 17));
  EXPECT_EQ(std::tie(optimizer.algorithm, optimizer.weight_decay, optimizer.beta1, optimizer.beta2,
                     optimizer.eps, optimizer.momentum, optimizer.grad_clip, optimizer.kernel),
            std::make_tuple(parallel::OptimizerAlgorithm::kSgd, 0.18, 0.19, 0.2, 0.21, 0.22, 0.23,
                            parallel::OptimizerKernel::kUnfused));
  EXPECT_EQ(
      std::tie(o.evaluation.every, o.evaluation.tokens, o.evaluation.target_val_loss, o.log_every),
      std::make_tuple(24, 25, std::optional(2.6), 27));
  EXPECT_EQ(std::tie(o.checkpoint.every, o.checkpoint.keep, o.checkpoint.resume, o.device,
                     o.comm.backend, o.threads),
            std::make_tuple(28, 29, "auto", Device::kCpu, comm::Backend::kMpi, std::optional(3)));
  using std::chrono::milliseconds;
  EXPECT_EQ(std::tie(o.timeouts.setup, o.timeouts.step, o.timeouts.checkpoint,
                     o.timeouts.evaluation, o.comm.timeout_setup, o.comm.timeout_collective),
            std::make_tuple(milliseconds(1500), milliseconds(2000), milliseconds(3000),
                            milliseconds(4000), milliseconds(1500), milliseconds(2000)));
  EXPECT_EQ(std::tie(o.parallel.gradient_sync, o.parallel.bucket_mb, o.parallel.first_bucket_mb,
                     o.comm.shared_memory, o.parallel.unused_parameters),
            std::make_tuple(parallel::GradientSync::kBucketed, std::optional(3.5), 0.5, false,
                            parallel::UnusedParameters::kAllow));
  EXPECT_EQ(std::tie(o.data.loader_workers, o.data.prefetch, o.flush_denormals, o.ranges),
            std::make_tuple(5, 6, false, Ranges::kLayers));

  const std::string text = config_text(o);
  const std::string again = config_text(parse_train_options({"--config", file(text)}));
  EXPECT_EQ(again, text);
  EXPECT_THAT(text, HasSubstr("data = \"d # x\"\n"));
  for (const FlagGroup& group : train_flags()) {
    for (const Flag& flag : group.flags) {
      if (flag.scope == FlagScope::kCommandLine) continue;
      EXPECT_THAT(text, HasSubstr("\n" + flag.name + " = ")) << "not set by this test";
    }
  }
}

TEST_F(TrainParserTest, config_text_of_defaults_and_of_a_baseline_reads_back) {
  for (const Arguments& call : {Arguments{}, Arguments{"--baseline", "--overlap", "on"}}) {
    const std::string text = config_text(parse(call));

    EXPECT_EQ(config_text(parse_train_options({"--config", file(text)})), text);
  }
}

TEST_F(TrainParserTest, print_config_needs_no_data) {
  EXPECT_TRUE(parse_train_options({"--print-config"}).print_config);
}

TEST_F(TrainParserTest, set_vocabulary_pads_and_checks) {
  TrainOptions options = parse({"--pad-vocab", "128"});
  TrainOptions too_small = parse({"--vocab-size", "100"});
  EXPECT_EQ(options.model.config.vocab_size, 0);

  set_vocabulary(options, 300);

  EXPECT_EQ(options.model.config.vocab_size, 300);
  EXPECT_EQ(options.model.config.padded_vocab_size, 384);
  EXPECT_THROW(set_vocabulary(too_small, 300), core::ConfigError);
}

// Scripts of others rely on these names: a change here has to be wanted.
TEST_F(TrainParserTest, flags_are_the_frozen_list) {
  std::ifstream frozen(SIDESTREAM_TEST_FOLDER "/flags.txt");
  std::vector<std::string> expected;
  for (std::string line; std::getline(frozen, line);) expected.push_back(line);
  ASSERT_FALSE(expected.empty());

  EXPECT_THAT(names_of(train_flags()), ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(TrainParserTest, help_fits_the_width_and_names_every_flag) {
  const std::string help = train_help(80);

  std::istringstream lines(help.substr(help.find("Run:")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const std::string& name : names_of(train_flags())) EXPECT_THAT(help, HasSubstr("--" + name));
}

}  // namespace
}  // namespace sidestream::launch
