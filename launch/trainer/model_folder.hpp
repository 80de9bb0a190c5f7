// The model that a folder of weights holds: a checkpoint of ours or a folder of Hugging Face.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "model/config.hpp"
#include "parallel/config.hpp"

namespace sidestream::launch {

// "skipped checkpoint FOLDER: why"
std::string skipped_text(const checkpoint::SkippedCheckpoint& skipped);

struct WeightsFolder {
  std::filesystem::path folder;
  bool is_intact =
      false;  // its hashes were looked at when it was found; else require_intact() does
};

// The folder of weights that a user means: one with a config.json, or a run directory, whose newest
// valid checkpoint it is; `notes` get newer ones that cannot be used, and why. Throws
// CheckpointError.
WeightsFolder folder_of_weights(const std::filesystem::path& path, std::vector<std::string>& notes);

// Verifies sizes and hashes of a folder that has a manifest, as checkpoints of ours do; folders of
// Hugging Face have none. Throws CheckpointError.
void require_intact(const std::filesystem::path& folder);

// FOLDER/config.json. Throws CheckpointError when it is missing, no JSON, or asks for what this
// GPT-2 does not do.
model::ModelConfig read_model_config(const std::filesystem::path& folder);

// The token that ends a text, as FOLDER/config.json has it. Throws CheckpointError when the file is
// missing or no JSON.
std::optional<std::int64_t> end_of_text_of(const std::filesystem::path& folder);

// Throws CheckpointError where the weights are of blocks that config.json does not know of: nothing
// would be done with them.
void require_no_other_blocks(const model::ModelConfig& config, const checkpoint::TensorSet& tensors,
                             const std::filesystem::path& folder);

// The fields that two runs must share: those of config.json but for what may differ from run to
// run.
nlohmann::json identity_of(const model::ModelConfig& config);

// Throws CheckpointError that lists the fields in which the checkpoint differs from the model.
void require_same_model(const checkpoint::Checkpoint& checkpoint, const model::ModelConfig& config);

// Throws CheckpointError, with the flag, when the checkpoint's optimizer is another. Older
// checkpoints do not say.
void require_same_algorithm(const checkpoint::Checkpoint& checkpoint,
                            parallel::OptimizerAlgorithm algorithm);

}  // namespace sidestream::launch
