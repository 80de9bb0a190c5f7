#include "launch/trainer/training_state.hpp"

#include <limits>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

json to_json(const optim::LossScaleState& state) {
  return {{"scale", state.scale}, {"good_steps", state.good_steps}, {"left_out", state.left_out}};
}

std::optional<optim::LossScaleState> loss_scale_from(const json& training) {
  const auto found = training.find("loss_scale");
  if (found == training.end()) return std::nullopt;
  const optim::LossScaleState state{.scale = found->at("scale"),
                                    .good_steps = found->at("good_steps"),
                                    .left_out = found->at("left_out")};
  // A tensor in fp32 has it. A comparison with NaN is false.
  constexpr double kMost = std::numeric_limits<float>::max();
  if (state.scale >= optim::kLeastLossScale && state.scale <= kMost && state.good_steps >= 0 &&
      state.left_out >= 0)
    return state;
  throw core::CheckpointError(
      "the loss scale of the manifest cannot be used: expected a scale of at least 1 that a "
      "float can hold and counts that are not negative, found " +
      found->dump());
}

}  // namespace

nlohmann::json to_json(const TrainingState& state) {
  nlohmann::json training = {{"step", state.step},
                             {"samples", state.samples},
                             {"samples_per_step", state.samples_per_step},
                             {"training_s", state.training_s},
                             {"skipped", state.skipped},
                             {"recent_losses", state.recent_losses},
                             {"recent_norms", state.recent_norms},
                             {"bucket_order", state.bucket_order}};
  if (state.loss_scale) training["loss_scale"] = to_json(*state.loss_scale);
  if (!state.algorithm.empty()) training["algorithm"] = state.algorithm;
  if (!state.program.is_null()) training["program"] = state.program;
  return training;
}

std::string algorithm_of(const nlohmann::json& training) {
  const auto found = training.find("algorithm");
  if (found == training.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

TrainingState training_state_from(const nlohmann::json& json) {
  try {
    return {.step = json.at("step"),
            .samples = json.at("samples"),
            .samples_per_step = json.at("samples_per_step"),
            .training_s = json.at("training_s"),
            // Older checkpoints have none of the three.
            .skipped = json.value("skipped", std::int64_t{0}),
            .recent_losses = json.value("recent_losses", std::vector<double>()),
            .recent_norms = json.value("recent_norms", std::vector<double>()),
            .bucket_order = json.at("bucket_order").get<std::vector<std::string>>(),
            .loss_scale = loss_scale_from(json),
            .algorithm = algorithm_of(json),
            .program = json.value("program", nlohmann::json())};
  } catch (const nlohmann::json::exception& error) {
    throw core::CheckpointError(std::string("the training state of the manifest cannot be read: ") +
                                core::json_words(error));
  }
}

}  // namespace sidestream::launch
