#include "launch/trainer/training_state.hpp"

#include "core/base/error.hpp"

namespace sidestream::launch {

nlohmann::json to_json(const TrainingState& state) {
  return {{"step", state.step},
          {"samples", state.samples},
          {"samples_per_step", state.samples_per_step},
          {"training_s", state.training_s},
          {"skipped", state.skipped},
          {"recent_losses", state.recent_losses},
          {"recent_norms", state.recent_norms},
          {"bucket_order", state.bucket_order}};
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
            .bucket_order = json.at("bucket_order").get<std::vector<std::string>>()};
  } catch (const nlohmann::json::exception& error) {
    throw core::CheckpointError(std::string("the training state of the manifest cannot be read: ") +
                                error.what());
  }
}

}  // namespace sidestream::launch
