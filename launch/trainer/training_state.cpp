#include "launch/trainer/training_state.hpp"

#include "core/base/error.hpp"

namespace sidestream::launch {

nlohmann::json to_json(const TrainingState& state) {
  return {{"step", state.step},
          {"samples", state.samples},
          {"samples_per_step", state.samples_per_step},
          {"training_s", state.training_s},
          {"bucket_order", state.bucket_order}};
}

TrainingState training_state_from(const nlohmann::json& json) {
  try {
    return {.step = json.at("step"),
            .samples = json.at("samples"),
            .samples_per_step = json.at("samples_per_step"),
            .training_s = json.at("training_s"),
            .bucket_order = json.at("bucket_order").get<std::vector<std::string>>()};
  } catch (const nlohmann::json::exception& error) {
    throw core::CheckpointError(std::string("the training state of the manifest cannot be read: ") +
                                error.what());
  }
}

}  // namespace sidestream::launch
