#include <tuple>

#include "launch/options/config_file.hpp"
#include "tests/launch/options/train_parser_fixture.hpp"

namespace sidestream::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ConfigTextTest = TrainParserFixture;

// Every key away from its default, and where it ends up.
TEST_F(ConfigTextTest, parse_every_key_sets_its_member) {
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
                                              "fp16",
                                              "--loss-scale",
                                              "dynamic",
                                              "--loss-scale-interval",
                                              "26",
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
                                              "cuda",
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
                                              "--gradient-as-bucket-view",
                                              "off",
                                              "--nccl-ctas",
                                              "12",
                                              "--nccl-windows",
                                              "off",
                                              "--fused-ops",
                                              "off",
                                              "--packed-attention",
                                              "off",
                                              "--tune-products",
                                              "off",
                                              "--cuda-graph",
                                              "off",
                                              "--reduce-dtype",
                                              "fp32",
                                              "--offload",
                                              "none",
                                              "--optimizer-state-dtype",
                                              "bf16",
                                              "--loader-workers",
                                              "5",
                                              "--prefetch",
                                              "6",
                                              "--flush-denormals",
                                              "off",
                                              "--inject",
                                              "slow:rank=1,ms=60; nan:step=3",
                                              "--ranges",
                                              "layers",
                                              "--record",
                                              "on",
                                              "--record-ranges",
                                              "2048",
                                              "--sample-hz",
                                              "7",
                                              "--profile",
                                              "wait=1,warmup=2,active=3,repeat=4",
                                              "--profile-shapes",
                                              "--profile-memory",
                                              "--profile-stacks",
                                              "--profile-flops",
                                              "--profile-modules=h.*"});
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
  EXPECT_EQ(std::tie(o.parallel.grad_accumulation, o.parallel.gradient_as_bucket_view, o.precision,
                     o.parallel.reduce_dtype),
            std::make_tuple(14, false, Precision::kFp16, std::optional(core::DType::kFloat32)));
  EXPECT_TRUE(o.loss_scale.scale.has_value());
  EXPECT_EQ(o.loss_scale.fixed(), std::nullopt);
  EXPECT_EQ(o.loss_scale.interval, 26);
  EXPECT_EQ(
      std::tie(o.schedule.lr, o.schedule.min_lr_ratio, o.schedule.kind, o.schedule.warmup_steps),
      std::make_tuple(0.15, 0.16, "wsd", 17));
  EXPECT_EQ(std::tie(optimizer.algorithm, optimizer.weight_decay, optimizer.beta1, optimizer.beta2,
                     optimizer.eps, optimizer.momentum, optimizer.grad_clip, optimizer.kernel,
                     optimizer.state_dtype),
            std::make_tuple(parallel::OptimizerAlgorithm::kSgd, 0.18, 0.19, 0.2, 0.21, 0.22, 0.23,
                            parallel::OptimizerKernel::kUnfused, core::DType::kBFloat16));
  EXPECT_EQ(
      std::tie(o.evaluation.every, o.evaluation.tokens, o.evaluation.target_val_loss, o.log_every),
      std::make_tuple(24, 25, std::optional(2.6), 27));
  EXPECT_EQ(std::tie(o.checkpoint.every, o.checkpoint.keep, o.checkpoint.resume, o.device,
                     o.comm.backend, o.threads),
            std::make_tuple(28, 29, "auto", Device::kCuda, comm::Backend::kMpi, std::optional(3)));
  using std::chrono::milliseconds;
  EXPECT_EQ(
      std::tie(o.timeouts.setup, o.timeouts.step, o.timeouts.checkpoint, o.timeouts.evaluation),
      std::make_tuple(milliseconds(1500), milliseconds(2000), milliseconds(3000),
                      milliseconds(4000)));
  EXPECT_EQ(std::tie(o.parallel.gradient_sync, o.parallel.bucket_mb, o.parallel.first_bucket_mb,
                     o.comm.shared_memory, o.parallel.unused_parameters),
            std::make_tuple(parallel::GradientSync::kBucketed, std::optional(3.5), 0.5, false,
                            parallel::UnusedParameters::kAllow));
  EXPECT_EQ(std::tie(o.data.loader_workers, o.data.prefetch, o.flush_denormals, o.ranges),
            std::make_tuple(5, 6, false, Ranges::kLayers));
  EXPECT_EQ(
      std::tie(o.record.record, o.record.ranges_per_thread, o.record.sample_hz, o.record.shapes,
               o.record.memory, o.record.stacks, o.record.flops, o.record.modules),
      std::make_tuple(RecordedSteps::kAll, 2048, 7, true, true, true, true, "h.*"));
  EXPECT_EQ(o.faults.size(), 2u);
  EXPECT_EQ(profile_schedule_text(o.record.profile.value()), "wait=1,warmup=2,active=3,repeat=4");

  const std::string text = config_text(o);
  const std::string again = config_text(parse_train_options({"--config", file(text)}));
  EXPECT_EQ(again, text);
  EXPECT_THAT(text, HasSubstr("data = \"d # x\"\n"));
  EXPECT_THAT(text, HasSubstr("inject = slow:rank=1,ms=60; nan:step=3\n"));
  for (const FlagGroup& group : train_flags()) {
    for (const Flag& flag : group.flags) {
      if (flag.scope == FlagScope::kCommandLine) continue;
      EXPECT_THAT(text, HasSubstr("\n" + flag.name + " = ")) << "not set by this test";
    }
  }
}

TEST_F(ConfigTextTest, config_text_of_defaults_and_of_a_baseline_reads_back) {
  for (const Arguments& call : {Arguments{}, Arguments{"--baseline", "--overlap", "on"}}) {
    const std::string text = config_text(parse(call));

    EXPECT_EQ(config_text(parse_train_options({"--config", file(text)})), text);
  }
}

TEST_F(ConfigTextTest, a_byte_order_mark_before_the_first_line_is_no_part_of_it) {
  EXPECT_EQ(parse({"--config", file("\xEF\xBB\xBFsteps = 3\n")}).steps, 3);
  EXPECT_THAT(error_with_data({"--config", file("steps = 3\n\xEF\xBB\xBFlr = 1\n")}),
              HasSubstr(":2: unknown key"));
}

TEST_F(ConfigTextTest, a_file_in_utf_16_is_named_as_one) {
  const std::string text(
      "\xFF\xFEs\0t\0e\0p\0s\0 \0=\0 \0"
      "3\0",
      20);
  EXPECT_THAT(error_with_data({"--config", file(text)}),
              HasSubstr("expected text in UTF-8, found a zero byte at offset 3"));
}

TEST_F(ConfigTextTest, a_value_that_is_no_utf_8_is_refused_before_it_is_written) {
  TrainOptions options = parse({});
  options.run_dir = "r/bad\xff name";
  try {
    config_text(options);
    ADD_FAILURE() << "was written";
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected UTF-8, found another byte at offset 5"));
  }
}

TEST_F(ConfigTextTest, print_config_needs_no_data) {
  EXPECT_TRUE(parse_train_options({"--print-config"}).print_config);
}

TEST_F(ConfigTextTest, a_file_beyond_the_limit_is_refused) {
  const std::string most = "steps = 3\n#" + std::string(kConfigFileLimitBytes - 11, ' ');
  ASSERT_EQ(most.size(), kConfigFileLimitBytes);

  EXPECT_EQ(parse({"--config", file(most)}).steps, 3);
  EXPECT_THAT(
      error_with_data({"--config", file(most + " ")}),
      AllOf(StartsWith("--config: " + (folder_ / "train.cfg").string() + " has 1048577 bytes"),
            HasSubstr("more than the limit of 1048576")));
}

}  // namespace
}  // namespace sidestream::launch
