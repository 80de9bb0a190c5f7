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
                                                {"loss-scale", "1024"},
                                                {"loss-scale-interval", "7"},
                                                {"nccl-ctas", "few"},
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
                                                {"reduce-dtype", "bf16"},
                                                {"shared-memory", "on"},
                                                {"tune-products", "on"},
                                                {"zero", "1"}};

// Off, for those that --baseline leaves to their defaults; a size of buckets counts with buckets.
const std::map<std::string, std::string> kOffByDefault = {
    {"bucket-mb", "auto"}, {"nccl-ctas", "auto"}, {"reduce-dtype", "fp32"}};

// What there is in some precisions only needs one of them.
Arguments precision_for(const std::string& flag) {
  if (flag == "packed-attention" || flag == "tune-products") return {"--precision", "bf16"};
  if (flag.starts_with("loss-scale")) return {"--precision", "fp16", "--device", "cuda"};
  return {};
}

class ToggleLatticeTest : public TrainParserFixture {
 protected:
  std::string baseline_with(Arguments more, const std::string& flag) const {
    more.insert(more.begin(), "--baseline");
    const Arguments precision = precision_for(flag);
    more.insert(more.end(), precision.begin(), precision.end());
    return config_text(parse(more));
  }
};

TEST_F(ToggleLatticeTest, baseline_values_each_can_be_turned_on_alone) {
  for (const Given& off : baseline_values()) {
    ASSERT_TRUE(kOn.contains(off.name)) << off.name;
    EXPECT_NE(baseline_with({"--" + off.name, kOn.at(off.name)}, off.name),
              baseline_with({}, off.name));
  }
}

TEST_F(ToggleLatticeTest, baseline_values_each_can_be_turned_off_alone) {
  for (const Given& off : baseline_values())
    EXPECT_NO_THROW(parse({"--" + off.name, off.value})) << off.name;
}

TEST_F(ToggleLatticeTest, what_a_baseline_leaves_to_defaults_is_on_by_the_command_line_alone) {
  for (const std::string& name : left_to_defaults()) {
    ASSERT_TRUE(kOn.contains(name)) << name;
    const std::string baseline = baseline_with({}, name);
    EXPECT_NE(baseline_with({"--" + name, kOn.at(name)}, name), baseline) << name;
    const std::string config = file(name + " = " + kOn.at(name) + "\n");
    EXPECT_EQ(baseline_with({"--config", config}, name), baseline) << name;
  }
}

TEST_F(ToggleLatticeTest, what_a_baseline_leaves_to_defaults_can_be_turned_off_alone) {
  for (const auto& [name, off] : kOffByDefault) EXPECT_NO_THROW(parse({"--" + name, off})) << name;
  const auto with_size = [&](const std::string& size) {
    return baseline_with({"--bucketing", "on", "--bucket-mb", size}, "bucket-mb");
  };
  EXPECT_NE(with_size("1"), with_size("auto"));
}

}  // namespace
}  // namespace sidestream::launch
