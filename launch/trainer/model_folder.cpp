#include "launch/trainer/model_folder.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/checkpoint/model_fields.hpp"
#include "model/hugging_face.hpp"

namespace sidestream::launch {
namespace {

std::string read_text(const std::filesystem::path& file) {
  try {
    return core::read_file(file);
  } catch (const core::Error& error) {
    throw core::CheckpointError(error.what());
  }
}

}  // namespace

model::ModelConfig read_model_config(const std::filesystem::path& folder) {
  const auto json = nlohmann::json::parse(read_text(folder / "config.json"), nullptr, false);
  if (json.is_discarded())
    throw core::CheckpointError((folder / "config.json").string() + " is not JSON");
  return model::from_hugging_face(json);
}

void require_intact(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / checkpoint::kManifestFile))
    checkpoint::open_checkpoint(folder);
}

nlohmann::json identity_of(const model::ModelConfig& config) {
  model::ModelConfig comparable = config;
  comparable.dropout = 0;
  return model::to_hugging_face(comparable);
}

void require_same_model(const checkpoint::Checkpoint& checkpoint,
                        const model::ModelConfig& config) {
  checkpoint::require_same_model(checkpoint.manifest.model, identity_of(config), checkpoint.folder);
}

}  // namespace sidestream::launch
