#include <sstream>

#include "launch/options/offload.hpp"
#include "tests/launch/options/train_parser_fixture.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;
using TrainParserTest = TrainParserFixture;

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
  EXPECT_EQ(options.precision, Precision::kFp32);
  EXPECT_EQ(options.model.config.fused_ops, model::FusedOps::kOff);
  EXPECT_EQ(options.model.config.loss_chunks, 1);
  EXPECT_EQ(options.model.config.recompute, model::Recompute::kNone);
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

TEST_F(TrainParserTest, parse_optimizer_state_is_fp32_unless_asked_for) {
  const auto type_with = [&](const Arguments& arguments) {
    return parse(arguments).parallel.optimizer.state_dtype;
  };
  const std::string config = file("optimizer-state-dtype = bf16\n");

  EXPECT_EQ(type_with({}), core::DType::kFloat32);
  EXPECT_EQ(type_with({"--config", config}), core::DType::kBFloat16);
  EXPECT_EQ(type_with({"--config", config, "--baseline"}), core::DType::kFloat32);
  EXPECT_EQ(type_with({"--baseline", "--optimizer-state-dtype", "bf16"}), core::DType::kBFloat16);
  EXPECT_THAT(error_with_data({"--optimizer-state-dtype", "fp16"}), HasSubstr("fp16"));
}

TEST_F(TrainParserTest, parse_baseline_with_one_copy_of_the_state_has_what_that_needs) {
  const TrainOptions options = parse({"--baseline", "--zero", "1"});

  EXPECT_EQ(options.parallel.state_sharing, parallel::StateSharing::kOn);
  EXPECT_TRUE(options.comm.shared_memory);
  EXPECT_EQ(options.parallel.optimizer.kernel, parallel::OptimizerKernel::kFused);
  EXPECT_EQ(parse({"--baseline"}).parallel.state_sharing, parallel::StateSharing::kOff);
}

TEST_F(TrainParserTest, parse_flags_that_trade_memory_for_work) {
  EXPECT_EQ(parse({}).model.config.loss_chunks, 0);
  EXPECT_EQ(parse({"--loss-chunks", "auto", "--model", "gpt2-mini"}).model.config.loss_chunks, 0);
  EXPECT_EQ(parse({"--loss-chunks", "7", "--model", "mlp"}).model.config.loss_chunks, 7);
  EXPECT_EQ(parse({"--recompute", "blocks", "--model", "gpt2-mini"}).model.config.recompute,
            model::Recompute::kBlocks);
  const TrainOptions on_top = parse({"--baseline", "--loss-chunks", "auto", "--recompute", "mlp"});
  EXPECT_EQ(on_top.model.config.loss_chunks, 0);
  EXPECT_EQ(on_top.model.config.recompute, model::Recompute::kMlp);

  EXPECT_THAT(
      error_with_data({"--loss-chunks", "0"}),
      HasSubstr("--loss-chunks: expected auto or an integer, from 1 to 16777216, found '0'"));
  EXPECT_THAT(error_with_data({"--loss-chunks", "x"}), HasSubstr("auto"));
  EXPECT_THAT(error_with_data({"--recompute", "all"}), HasSubstr("activations"));
  EXPECT_THAT(error_with_data({"--recompute", "blocks", "--model", "mlp"}),
              HasSubstr("use --recompute none"));
}

TEST_F(TrainParserTest, parse_offload_has_what_it_needs) {
  using model::Recompute;
  const auto offload = [&](const Arguments& arguments) {
    return offload_of(parse(arguments)).text();
  };
  EXPECT_EQ(offload({}), "none");
  EXPECT_EQ(offload({"--offload", "optimizer"}), "optimizer");
  EXPECT_EQ(offload({"--offload", "optimizer,residuals"}), "residuals,optimizer");
  EXPECT_EQ(offload({"--offload", "residuals", "--model", "gpt2-mini"}), "residuals");
  EXPECT_EQ(parse({"--offload", "residuals"}).model.config.recompute, Recompute::kBlocks);
  EXPECT_EQ(parse({"--baseline", "--offload", "residuals"}).model.config.recompute,
            Recompute::kBlocks);
  EXPECT_EQ(parse({"--baseline", "--offload", "optimizer"}).parallel.optimizer.kernel,
            parallel::OptimizerKernel::kFused);

  const std::string config = file("offload = residuals,optimizer\n");
  EXPECT_EQ(offload({"--config", config}), "residuals,optimizer");
  EXPECT_EQ(offload({"--config", config, "--baseline"}), "none");
  EXPECT_EQ(offload({"--config", config, "--recompute", "mlp"}), "optimizer");
  EXPECT_EQ(offload({"--config", config, "--fused-optimizer", "off"}), "residuals");
}

TEST_F(TrainParserTest, parse_offload_that_cannot_be_is_refused) {
  EXPECT_THAT(error_with_data({"--offload", "all"}), HasSubstr("--offload: expected none, "));
  EXPECT_THAT(error_with_data({"--offload", "both"}),
              HasSubstr("or both as residuals,optimizer, found 'both'"));
  EXPECT_THAT(error_with_data({"--offload", ""}), HasSubstr("--offload"));
  EXPECT_THAT(error_with_data({"--offload", "optimizer,"}), HasSubstr("found 'optimizer,'"));
  EXPECT_THAT(error_with_data({"--offload", "none,optimizer"}), HasSubstr("without it"));
  EXPECT_THAT(error_with_data({"--offload", "optimizer,optimizer"}), HasSubstr("once"));
  EXPECT_THAT(error_with_data({"--offload", "residuals", "--recompute", "mlp"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error_with_data({"--offload", "optimizer", "--fused-optimizer", "off"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error_with_data({"--offload", "residuals", "--model", "mlp"}),
              HasSubstr("leave residuals out"));
  for (const char* what : {"residuals", "optimizer", "residuals,optimizer"}) {
    const std::string text = error_with_data({"--offload", what, "--device", "cpu"});
    EXPECT_THAT(text, HasSubstr("--recompute blocks"));
    EXPECT_THAT(text, HasSubstr("--zero 1 and --optimizer-state-dtype bf16"));
  }
}

TEST_F(TrainParserTest, parse_zero_without_shared_memory_keeps_both) {
  const TrainOptions options = parse({"--zero", "1", "--shared-memory", "off"});

  EXPECT_EQ(options.parallel.state_sharing, parallel::StateSharing::kOn);
  EXPECT_FALSE(options.comm.shared_memory);
  EXPECT_FALSE(
      parse({"--config", file("shared-memory = off\n"), "--zero", "1"}).comm.shared_memory);
}

TEST_F(TrainParserTest, parse_conflicting_flags_name_both) {
  EXPECT_THAT(error_with_data({"--overlap", "on", "--bucketing", "off"}),
              HasSubstr("--overlap on and --bucketing off exclude each other"));
  EXPECT_THAT(error_with_data({"--zero", "1", "--fused-optimizer", "off"}),
              HasSubstr("--zero 1 and --fused-optimizer off exclude each other"));
  EXPECT_THAT(error_with_data({"--loader-workers", "2", "--prefetch", "0"}),
              HasSubstr("--loader-workers 2 and --prefetch 0 exclude each other"));
  EXPECT_THAT(error_with_data({"--device", "cpu", "--backend", "nccl"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error_with_data({"--init", "a", "--resume", "b"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error_with_data({"--target-val-loss", "1.5"}), HasSubstr("--eval-every"));
  EXPECT_THAT(error_with_data({"--target-val-loss", "1.5", "--eval-every", "5"}),
              HasSubstr("needs a validation split"));
}

TEST_F(TrainParserTest, parse_wrong_names_are_refused_with_the_nearest) {
  EXPECT_THAT(error_with_data({"--overlab", "on"}),
              HasSubstr("unknown flag '--overlab'. Did you mean --overlap?"));
  EXPECT_THAT(error_with_data({"--over", "on"}), HasSubstr("Did you mean --overlap?"));
  EXPECT_THAT(error_with_data({"--check", "1"}), HasSubstr("unknown flag"));
  EXPECT_THAT(error_with_data({"--profile", "x"}), HasSubstr("--profile: expected wait=N"));
  EXPECT_THAT(error_with_data({"stray"}), HasSubstr("takes flags only"));
  EXPECT_THAT(error_with_data({"-n", "2"}), HasSubstr("takes flags only"));
  EXPECT_THAT(error_with_data({"--steps"}), HasSubstr("--steps: expected a value"));
  EXPECT_THAT(error_with_data({"--steps="}), HasSubstr("--steps: expected"));
  EXPECT_THAT(error_with_data({"--baseline="}), HasSubstr("expected on or off, found ''"));
  EXPECT_THAT(error_with_data({"--steps", "--lr", "1"}),
              HasSubstr("--steps: expected a value, found the flag --lr"));
  EXPECT_THAT(error_with_data({"--lr", "1", "--lr", "1"}), HasSubstr("--lr is given twice"));
}

TEST_F(TrainParserTest, parse_wrong_values_say_what_was_expected) {
  EXPECT_EQ(error_with_data({"--steps", "ten"}),
            "--steps: expected an integer, from 0 to 1000000000, found 'ten'");
  EXPECT_THAT(error_with_data({"--steps", "-1"}), HasSubstr("from 0 to"));
  EXPECT_THAT(error_with_data({"--threads", "all"}),
              HasSubstr("--threads: expected auto or an integer, from 1 to 1024, found 'all'"));
  EXPECT_THAT(error_with_data({"--bucket-mb", "0"}),
              HasSubstr("--bucket-mb: expected auto or a number, above 0 to 65536, found '0'"));
  EXPECT_THAT(error_with_data({"--steps", "1e3"}), HasSubstr("expected an integer"));
  EXPECT_THAT(error_with_data({"--steps", "99999999999999999999"}),
              HasSubstr("expected an integer"));
  EXPECT_THAT(error_with_data({"--lr", "nan"}), HasSubstr("expected a number"));
  EXPECT_THAT(error_with_data({"--beta1", "1"}), HasSubstr("from 0 to below 1, found '1'"));
  EXPECT_THAT(error_with_data({"--overlap", "true"}),
              HasSubstr("--overlap: expected on or off, found 'true'"));
  EXPECT_THAT(error_with_data({"--precision", "fp64"}),
              HasSubstr("expected one of fp32, tf32, bf16, fp16"));
  EXPECT_THAT(error_with_data({"--nccl-ctas", "65"}), HasSubstr("from 1 to 64, found '65'"));
  EXPECT_THAT(error_with_data({"--nccl-ctas", "none", "--nccl-windows", "off"}),
              HasSubstr("--nccl-ctas none and --nccl-windows off exclude each other"));
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
