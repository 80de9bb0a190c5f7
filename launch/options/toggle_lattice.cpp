#include "launch/options/toggle_lattice.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "launch/options/offload.hpp"

namespace sidestream::launch {
namespace {

struct Side {
  std::string name;
  std::string fallback;  // default value
  std::string agreeing;  // value to take when the other side wins
};

// `first` and `second` disagree: the one from the lower layer takes its agreeing value.
void settle(GivenLayers& layers, const Side& first, const Side& second) {
  const Layer first_layer = layers.layer_of(first.name);
  const Layer second_layer = layers.layer_of(second.name);
  if (first_layer == second_layer && first_layer != Layer::kDefaults) {
    throw core::ConfigError(
        fmt::format("--{} {} and --{} {} exclude each other: leave one of them out", first.name,
                    layers.value_of(first.name, first.fallback), second.name,
                    layers.value_of(second.name, second.fallback)));
  }
  const Side& loser = first_layer < second_layer ? first : second;
  layers.set(loser.name, loser.agreeing);
}

// What cannot be read is refused where it is set, which knows where it comes from.
Offload readable_offload(const GivenLayers& layers) {
  try {
    return Offload::from_text(layers.value_of("offload", "none"));
  } catch (const core::ConfigError&) {
    return {};
  }
}

// What goes to the host decides how it is computed, and the other way round.
void settle_offload(GivenLayers& layers) {
  Offload offload = readable_offload(layers);
  if (offload.residuals && layers.value_of("recompute", "none") != "blocks") {
    const Offload without{.residuals = false, .optimizer = offload.optimizer};
    settle(layers, {"offload", "none", without.text()}, {"recompute", "none", "blocks"});
    offload = readable_offload(layers);
  }
  if (offload.optimizer && layers.value_of("fused-optimizer", "on") == "off") {
    const Offload without{.residuals = offload.residuals, .optimizer = false};
    settle(layers, {"offload", "none", without.text()}, {"fused-optimizer", "on", "on"});
  }
}

}  // namespace

void settle_toggles(GivenLayers& layers) {
  const std::string overlap = layers.value_of("overlap", "on");
  const std::string bucketing = layers.value_of("bucketing", "on");
  if (overlap == "on" && bucketing == "off") {
    settle(layers, {"overlap", "on", "off"}, {"bucketing", "on", "on"});
  }
  if (layers.value_of("zero", "auto") == "1") {
    const Side zero{"zero", "auto", "0"};
    // One copy is what a node does best; who switches the memory off by hand gets slices.
    if (layers.layer_of("shared-memory") == Layer::kBaseline) layers.set("shared-memory", "on");
    if (layers.value_of("zero", "auto") == "1" && layers.value_of("fused-optimizer", "on") == "off")
      settle(layers, zero, {"fused-optimizer", "on", "on"});
  }
  if (layers.value_of("nccl-ctas", "auto") == "none" &&
      layers.value_of("nccl-windows", "on") == "off")
    settle(layers, {"nccl-ctas", "auto", "few"}, {"nccl-windows", "on", "on"});
  for (const char* needs_operators : {"packed-attention", "tune-products"}) {
    if (layers.value_of(needs_operators, "auto") == "on" &&
        layers.value_of("fused-ops", "on") == "off")
      settle(layers, {needs_operators, "auto", "off"}, {"fused-ops", "on", "on"});
  }
  settle_offload(layers);
  // The plain optimizer takes the learning rate as an argument of its launches.
  if (layers.value_of("cuda-graph", "off") == "on" &&
      layers.value_of("fused-optimizer", "on") == "off")
    settle(layers, {"cuda-graph", "off", "off"}, {"fused-optimizer", "on", "on"});
  const bool reads_ahead = layers.value_of("loader-workers", "1") != "0";
  const bool holds_batches = layers.value_of("prefetch", "4") != "0";
  if (reads_ahead != holds_batches) {
    settle(layers, {"loader-workers", "1", holds_batches ? "1" : "0"},
           {"prefetch", "4", reads_ahead ? "4" : "0"});
  }
}

std::vector<Given> baseline_values() {
  std::vector<Given> values;
  const std::vector<std::pair<std::string, std::string>> off = {{"overlap", "off"},
                                                                {"bucketing", "off"},
                                                                {"gradient-as-bucket-view", "off"},
                                                                {"shared-memory", "off"},
                                                                {"nccl-windows", "off"},
                                                                {"fused-optimizer", "off"},
                                                                {"optimizer-state-dtype", "fp32"},
                                                                {"zero", "0"},
                                                                {"fused-ops", "off"},
                                                                {"packed-attention", "off"},
                                                                {"tune-products", "off"},
                                                                {"loss-chunks", "1"},
                                                                {"recompute", "none"},
                                                                {"offload", "none"},
                                                                {"cuda-graph", "off"},
                                                                {"precision", "fp32"},
                                                                {"loader-workers", "0"},
                                                                {"prefetch", "0"},
                                                                {"pin-memory", "off"},
                                                                {"async-checkpoints", "off"},
                                                                {"late-loss", "off"},
                                                                {"pin-threads", "off"},
                                                                {"huge-pages", "off"},
                                                                {"keep-memory", "off"},
                                                                {"flush-denormals", "off"}};
  for (const auto& [name, value] : off) values.push_back({name, value, "--baseline: " + name});
  return values;
}

std::vector<std::string> left_to_defaults() {
  return {"loss-scale", "loss-scale-interval", "nccl-ctas", "reduce-dtype"};
}

}  // namespace sidestream::launch
