// Each optimisation is one flag: it can be turned on alone over --baseline, and off alone against
// the defaults, which is what `sidestream verify --base ... --new ...` needs.
#include "launch/options/toggle_lattice.hpp"

#include <map>

#include "tests/launch/options/train_parser_fixture.hpp"

namespace sidestream::launch {
namespace {

// A value that differs from the baseline's. A toggle that is missing here fails the test.
const std::map<std::string, std::string> kOn = {{"async-checkpoints", "on"},
                                                {"bucketing", "on"},
                                                {"cuda-graph", "on"},
                                                {"flush-denormals", "on"},
                                                {"fused-ops", "on"},
                                                {"fused-optimizer", "on"},
                                                {"gradient-as-bucket-view", "on"},
                                                {"huge-pages", "on"},
                                                {"keep-memory", "on"},
                                                {"late-loss", "on"},
                                                {"loader-workers", "1"},
                                                {"loss-chunks", "4"},
                                                {"nccl-windows", "on"},
                                                {"offload", "optimizer"},
                                                {"optimizer-state-dtype", "bf16"},
                                                {"overlap", "on"},
                                                {"packed-attention", "on"},
                                                {"pin-memory", "on"},
                                                {"pin-threads", "on"},
                                                {"precision", "bf16"},
                                                {"prefetch", "4"},
                                                {"recompute", "mlp"},
                                                {"shared-memory", "on"},
                                                {"tune-products", "on"},
                                                {"zero", "1"}};

using ToggleLatticeTest = TrainParserFixture;

TEST_F(ToggleLatticeTest, baseline_values_each_can_be_turned_on_alone) {
  const std::string baseline = config_text(parse({"--baseline"}));
  for (const Given& off : baseline_values()) {
    ASSERT_TRUE(kOn.contains(off.name)) << off.name;
    Arguments with_one = {"--baseline", "--" + off.name, kOn.at(off.name)};
    // There are none in fp32.
    if (off.name == "packed-attention" || off.name == "tune-products")
      with_one.insert(with_one.end(), {"--precision", "bf16"});
    EXPECT_NE(config_text(parse(with_one)), baseline) << off.name;
  }
}

TEST_F(ToggleLatticeTest, baseline_values_each_can_be_turned_off_alone) {
  for (const Given& off : baseline_values())
    EXPECT_NO_THROW(parse({"--" + off.name, off.value})) << off.name;
}

}  // namespace
}  // namespace sidestream::launch
