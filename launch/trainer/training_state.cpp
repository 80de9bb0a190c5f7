#include "launch/trainer/training_state.hpp"

#include <limits>

#include "core/base/error.hpp"
#include "core/base/json_count.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/number_bounds.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

template <typename T>
T count_in(const json& training, const char* key) {
  return core::count_at<T>(training, key,
                           [](const std::string& expected, const std::string& found) {
                             return core::CheckpointError(
                                 "the training state of the manifest cannot be used: expected " +
                                 expected + ", found " + found);
                           });
}

// 0 where it is missing.
template <typename T>
T count_if_there(const json& training, const char* key) {
  return training.contains(key) ? count_in<T>(training, key) : T{0};
}

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
  if (state.scale >= optim::kLeastLossScale && state.scale <= kMost &&
      core::bounds::kCount.hold(state.good_steps) && core::bounds::kCount.hold(state.left_out))
    return state;
  throw core::CheckpointError(
      "the loss scale of the manifest cannot be used: expected a scale of at least 1 that a "
      "float can hold and counts from 0 to 1e15, found " +
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
  if (state.rolled_back_s > 0) training["rolled_back_s"] = state.rolled_back_s;
  if (state.sequence_length > 0) training["sequence_length"] = state.sequence_length;
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
    return {.step = count_in<std::int64_t>(json, "step"),
            .samples = count_in<std::uint64_t>(json, "samples"),
            .samples_per_step = count_in<std::uint64_t>(json, "samples_per_step"),
            // Older checkpoints lack it, and four of those that follow.
            .sequence_length = count_if_there<std::uint64_t>(json, "sequence_length"),
            .training_s = json.at("training_s"),
            .rolled_back_s = json.value("rolled_back_s", 0.0),
            .skipped = count_if_there<std::int64_t>(json, "skipped"),
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
