#include "launch/trainer/model_folder.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/shallow_json.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/checkpoint/model_fields.hpp"
#include "model/hugging_face.hpp"

namespace sidestream::launch {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

nlohmann::json read_config(const std::filesystem::path& file) {
  try {
    return core::read_shallow_json(file, kMaxConfigBytes);
  } catch (const nlohmann::json::exception&) {
    throw core::CheckpointError(file.string() + " is not JSON");
  } catch (const core::NestingError& error) {
    throw core::CheckpointError(core::FileFault{
        .file = file.string(), .offset_bytes = {}, .expected = error.what(), .found = "more"});
  } catch (const core::Error& error) {
    throw core::CheckpointError(error.what());
  }
}

}  // namespace

model::ModelConfig read_model_config(const std::filesystem::path& folder) {
  return model::from_hugging_face(read_config(folder / "config.json"));
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
