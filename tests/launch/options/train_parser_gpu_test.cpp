// Flags of what only a GPU has: loss scales, NCCL's compute units, graphs, its own operators.
#include "tests/launch/options/train_parser_fixture.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;
using TrainParserTest = TrainParserFixture;

TEST_F(TrainParserTest, parse_loss_scale_is_dynamic_or_a_number_and_of_fp16_only) {
  const auto scale_with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--precision", "fp16"});
    return parse(more).loss_scale;
  };
  const std::string config = file("precision = fp16\nloss-scale = 512\n");

  EXPECT_FALSE(scale_with({}).is_given());
  EXPECT_TRUE(scale_with({"--loss-scale", "dynamic"}).is_given());
  EXPECT_EQ(scale_with({"--loss-scale", "dynamic"}).fixed(), std::nullopt);
  EXPECT_EQ(scale_with({"--loss-scale", "1024"}).fixed(), 1024);
  EXPECT_EQ(scale_with({"--loss-scale-interval", "500"}).interval, 500);
  EXPECT_EQ(parse({"--config", config}).loss_scale.fixed(), 512);
  EXPECT_FALSE(parse({"--config", config, "--baseline"}).loss_scale.is_given());

  for (const char* precision : {"fp32", "tf32", "bf16"}) {
    EXPECT_THAT(error_with_data({"--precision", precision, "--loss-scale", "dynamic"}),
                HasSubstr("are for --precision fp16"));
    EXPECT_THAT(error_with_data({"--precision", precision, "--loss-scale-interval", "9"}),
                HasSubstr("are for --precision fp16"));
  }
  const auto error_in_fp16 = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--precision", "fp16"});
    return error_with_data(more);
  };
  EXPECT_THAT(error_in_fp16({"--loss-scale", "0.5"}), HasSubstr("--loss-scale: expected a number"));
  EXPECT_THAT(error_in_fp16({"--loss-scale", "1e9"}), HasSubstr("--loss-scale: expected a number"));
  EXPECT_THAT(error_in_fp16({"--loss-scale", "off"}), HasSubstr("--loss-scale: expected a number"));
  EXPECT_THAT(error_in_fp16({"--loss-scale-interval", "0"}),
              HasSubstr("--loss-scale-interval: expected an integer"));
  EXPECT_THAT(error_in_fp16({"--loss-scale", "64", "--loss-scale-interval", "9"}),
              HasSubstr("--loss-scale-interval is of a dynamic loss scale"));
  EXPECT_THAT(error_in_fp16({"--reduce-dtype", "bf16"}), HasSubstr("--reduce-dtype fp32"));
  EXPECT_THAT(error_in_fp16({"--device", "cpu"}), HasSubstr("on the processor use bf16"));
}

TEST_F(TrainParserTest, parse_ctas_are_a_number_or_a_policy) {
  using comm::nccl::CtaPolicy;
  const auto tuning_of = [&](const std::string& text) {
    return parse({"--nccl-ctas", text}).comm.nccl;
  };

  EXPECT_EQ(tuning_of("auto").cta_policy, CtaPolicy::kDefault);
  EXPECT_EQ(tuning_of("few").cta_policy, CtaPolicy::kEfficiency);
  EXPECT_EQ(tuning_of("none").cta_policy, CtaPolicy::kZero);
  EXPECT_EQ(tuning_of("16").ctas, 16);
  EXPECT_EQ(tuning_of("16").cta_policy, CtaPolicy::kDefault);
}

TEST_F(TrainParserTest, parse_ctas_of_copy_engines_bring_the_windows_that_they_need) {
  EXPECT_TRUE(parse({"--baseline", "--nccl-ctas", "none"}).comm.nccl.windows);
  EXPECT_TRUE(
      parse({"--config", file("nccl-windows = off\n"), "--nccl-ctas", "none"}).comm.nccl.windows);
  EXPECT_FALSE(parse({"--baseline"}).comm.nccl.windows);
}

TEST_F(TrainParserTest, parse_cuda_graph_is_off_and_brings_the_optimizer_that_it_needs) {
  using parallel::OptimizerKernel;
  EXPECT_FALSE(parse({}).cuda_graph);
  EXPECT_TRUE(parse({"--cuda-graph", "on"}).cuda_graph);
  const TrainOptions alone = parse({"--baseline", "--cuda-graph", "on"});
  EXPECT_TRUE(alone.cuda_graph);
  EXPECT_EQ(alone.parallel.optimizer.kernel, OptimizerKernel::kFused);
  const TrainOptions baseline = parse({"--config", file("cuda-graph = on\n"), "--baseline"});
  EXPECT_FALSE(baseline.cuda_graph);
  EXPECT_EQ(baseline.parallel.optimizer.kernel, OptimizerKernel::kUnfused);
}

TEST_F(TrainParserTest, parse_cuda_graph_refuses_what_a_replay_cannot_have) {
  const auto error_beside_graph = [&](Arguments others) {
    others.insert(others.begin(), {"--cuda-graph", "on"});
    return error_with_data(others);
  };
  EXPECT_EQ(error_beside_graph({"--device", "cpu"}),
            "--cuda-graph on and --device cpu exclude each other: a CUDA graph needs a GPU; leave "
            "--cuda-graph out");
  EXPECT_THAT(error_beside_graph({"--backend", "mpi"}), HasSubstr("leave --backend out for NCCL"));
  EXPECT_THAT(error_beside_graph({"--unused-parameters", "allow"}),
              HasSubstr("--unused-parameters allow exclude each other"));
  for (const char* policy : {"skip", "rollback"}) {
    EXPECT_THAT(error_beside_graph({"--nan-policy", policy}), HasSubstr("take stop or warn"));
    EXPECT_THAT(error_beside_graph({"--spike-policy", policy}), HasSubstr("take stop or warn"));
  }
  for (const char* level : {"attention", "blocks"}) {
    EXPECT_THAT(error_beside_graph({"--recompute", level, "--dropout", "0.1"}),
                HasSubstr("--dropout 0, or --recompute mlp"));
    EXPECT_EQ(error_beside_graph({"--recompute", level}), "no error");
  }
  for (const char* level : {"activations", "mlp"})
    EXPECT_EQ(error_beside_graph({"--recompute", level, "--dropout", "0.1"}), "no error");
  EXPECT_THAT(error_beside_graph({"--check-collectives"}),
              HasSubstr("--check-collectives exclude each other: a replay makes no calls"));
  for (const char* what : {"residuals", "optimizer"}) {
    EXPECT_THAT(error_beside_graph({"--offload", what}),
                HasSubstr(std::string("--offload ") + what + " exclude each other"));
  }
  EXPECT_EQ(error_beside_graph({"--precision", "fp16"}), "no error");
  EXPECT_EQ(error_beside_graph({"--spike-policy", "stop"}), "no error");
  EXPECT_EQ(error_beside_graph({"--fused-optimizer", "off"}),
            "--cuda-graph on and --fused-optimizer off exclude each other: leave one of them out");
}

TEST_F(TrainParserTest,
       parse_tune_products_is_left_to_the_device_and_brings_the_operators_that_it_needs) {
  EXPECT_EQ(parse({}).model.tune_products, Toggle::kAuto);
  EXPECT_FALSE(parse({}).model.config.tune_products) << "until the device is known";
  EXPECT_EQ(parse({"--baseline"}).model.tune_products, Toggle::kOff);
  EXPECT_EQ(error_with_data({"--tune-products", "maybe"}),
            "--tune-products: expected one of auto, on, off, found 'maybe'");
  const TrainOptions alone = parse({"--baseline", "--precision", "bf16", "--tune-products", "on"});
  EXPECT_TRUE(alone.model.config.tune_products);
  EXPECT_EQ(alone.model.config.fused_ops, model::FusedOps::kOn);
  EXPECT_TRUE(parse({"--tune-products", "on", "--precision", "fp16", "--model", "gpt2-124m"})
                  .model.config.tune_products);
  EXPECT_FALSE(
      parse({"--config", file("tune-products = on\n"), "--baseline"}).model.config.tune_products);
}

TEST_F(TrainParserTest, parse_tune_products_refuses_what_has_none) {
  const auto error = [&](Arguments others) {
    others.insert(others.begin(), {"--tune-products", "on", "--precision", "bf16"});
    return error_with_data(others);
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({"--packed-attention", "on"}), "no error");
  EXPECT_EQ(error({"--device", "cpu"}),
            "--tune-products on is for GPUs, in --precision bf16 or fp16: elsewhere leave it out");
  EXPECT_EQ(error({"--fused-ops", "off"}),
            "--tune-products on and --fused-ops off exclude each other: leave one of them out");
  EXPECT_THAT(error({"--deterministic"}),
              HasSubstr("--tune-products on and --deterministic exclude each other"));
  for (const char* precision : {"fp32", "tf32"})
    EXPECT_THAT(error_with_data({"--tune-products", "on", "--precision", precision}),
                HasSubstr("is for GPUs, in --precision bf16 or fp16"));
}

TEST_F(TrainParserTest,
       parse_packed_attention_is_left_to_the_device_and_brings_the_operators_that_it_needs) {
  EXPECT_EQ(parse({}).model.packed_attention, Toggle::kAuto);
  EXPECT_FALSE(parse({}).model.config.packed_attention) << "until the device is known";
  EXPECT_EQ(parse({"--baseline"}).model.packed_attention, Toggle::kOff);
  const TrainOptions alone =
      parse({"--baseline", "--precision", "bf16", "--packed-attention", "on"});
  EXPECT_TRUE(alone.model.config.packed_attention);
  EXPECT_EQ(alone.model.config.fused_ops, model::FusedOps::kOn);
  EXPECT_TRUE(parse({"--packed-attention", "on", "--precision", "fp16", "--model", "gpt2-124m"})
                  .model.config.packed_attention);
  EXPECT_FALSE(parse({"--config", file("packed-attention = on\n"), "--baseline"})
                   .model.config.packed_attention);
}

TEST_F(TrainParserTest, parse_packed_attention_refuses_what_has_none) {
  const auto error = [&](Arguments others) {
    others.insert(others.begin(), {"--packed-attention", "on", "--precision", "bf16"});
    return error_with_data(others);
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({"--device", "cpu"}),
            "--packed-attention on is for GPUs, in --precision bf16 or fp16: elsewhere leave it "
            "out");
  EXPECT_EQ(error({"--fused-ops", "off"}),
            "--packed-attention on and --fused-ops off exclude each other: leave one of them out");
  EXPECT_EQ(error({"--model", "mlp"}),
            "--packed-attention on: models of the family 'mlp' have no attention: leave it out");
  EXPECT_EQ(error({"--dropout", "0.1"}),
            "--packed-attention on and --dropout 0.1 exclude each other: it draws nothing; take "
            "--dropout 0, or leave --packed-attention out");
  EXPECT_EQ(error({"--width", "60", "--heads", "3"}),
            "--packed-attention on needs heads of a multiple of 8 channels, 128 at most, found 20 "
            "(60 channels, 3 heads): leave it out");
  EXPECT_THAT(error({"--width", "144", "--heads", "1"}), HasSubstr("128 at most, found 144"));
  for (const char* precision : {"fp32", "tf32"})
    EXPECT_THAT(error_with_data({"--packed-attention", "on", "--precision", precision}),
                HasSubstr("is for GPUs, in --precision bf16 or fp16"));
}

}  // namespace
}  // namespace sidestream::launch
