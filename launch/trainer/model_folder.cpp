#include "launch/trainer/model_folder.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "core/base/error.hpp"
#include "core/base/shallow_json.hpp"
#include "core/checkpoint/find_checkpoint.hpp"
#include "core/checkpoint/manifest.hpp"
#include "core/checkpoint/model_fields.hpp"
#include "launch/trainer/training_state.hpp"
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
  const nlohmann::json config = read_config(folder / "config.json");
  try {
    return model::from_hugging_face(config);
  } catch (const core::CheckpointError& error) {  // "config.json: n_layer: ..."
    throw core::CheckpointError(folder.string() + "/" + error.what());
  }
}

std::optional<std::int64_t> end_of_text_of(const std::filesystem::path& folder) {
  const nlohmann::json config = read_config(folder / "config.json");
  const auto token = config.find("eos_token_id");
  if (token == config.end() || !token->is_number_integer()) return std::nullopt;
  return token->get<std::int64_t>();
}

std::string skipped_text(const checkpoint::SkippedCheckpoint& skipped) {
  return fmt::format("skipped checkpoint {}: {}", skipped.folder.string(), skipped.reason);
}

WeightsFolder folder_of_weights(const std::filesystem::path& path,
                                std::vector<std::string>& notes) {
  std::error_code ignored;
  if (std::filesystem::exists(path / "config.json", ignored)) return {.folder = path};
  const auto found = [&] {
    try {
      return checkpoint::find_checkpoint(path);
    } catch (const core::CheckpointError& error) {
      throw core::CheckpointError(
          fmt::format("{} has no config.json, as folders of weights do, and is read as a run: {}",
                      path.string(), error.what()));
    }
  }();
  for (const auto& skipped : found.skipped) notes.push_back(skipped_text(skipped));
  return {.folder = found.checkpoint.folder, .is_intact = true};
}

void require_intact(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / checkpoint::kManifestFile))
    checkpoint::open_checkpoint(folder);
}

void require_no_other_blocks(const model::ModelConfig& config, const checkpoint::TensorSet& tensors,
                             const std::filesystem::path& folder) {
  static const std::regex pattern(R"((?:.*\.)?h\.([0-9]{1,9})\..*)");
  for (const std::string& name : tensors.names()) {
    std::smatch block;
    if (!std::regex_match(name, block, pattern) || std::stoll(block[1]) < config.layers) continue;
    throw core::CheckpointError(fmt::format(
        "{}: config.json: n_layer: expected more than {}, for model.safetensors has the weights of "
        "block {} ({}), found {}",
        folder.string(), block[1].str(), block[1].str(), name, config.layers));
  }
}

nlohmann::json identity_of(const model::ModelConfig& config) {
  model::ModelConfig comparable = config;
  comparable.dropout = 0;
  // Which token ends a text is no part of a model: manifests have had the last one from the start.
  return model::to_hugging_face(comparable, comparable.vocab_size - 1);
}

void require_same_model(const checkpoint::Checkpoint& checkpoint,
                        const model::ModelConfig& config) {
  checkpoint::require_same_model(checkpoint.manifest.model, identity_of(config), checkpoint.folder);
}

void require_same_algorithm(const checkpoint::Checkpoint& checkpoint,
                            parallel::OptimizerAlgorithm algorithm) {
  const std::string wanted(parallel::name_of(algorithm));
  const std::string name = algorithm_of(checkpoint.manifest.training);
  if (name.empty() || name == wanted) return;
  throw core::CheckpointError(
      fmt::format("{}: expected the optimizer of --algorithm {}, found that of {}. Say --algorithm "
                  "{} to go on, "
                  "or start from its weights in a new run: --init {} --run-dir NEW",
                  checkpoint.folder.string(), wanted, name, name, checkpoint.folder.string()));
}

}  // namespace sidestream::launch
