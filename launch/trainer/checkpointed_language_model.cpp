#include "launch/trainer/checkpointed_language_model.hpp"

#include <utility>

#include "launch/trainer/model_folder.hpp"
#include "model/hugging_face.hpp"

namespace sidestream::launch {

CheckpointedLanguageModel::CheckpointedLanguageModel(const model::ModelConfig& config,
                                                     std::shared_ptr<const std::string> tokenizer,
                                                     std::optional<std::int64_t> end_of_text)
    : config_(config), tokenizer_(std::move(tokenizer)), end_of_text_(end_of_text) {}

nlohmann::json CheckpointedLanguageModel::identity() const { return identity_of(config_); }

std::int64_t CheckpointedLanguageModel::stored_rows(const std::string& parameter,
                                                    std::int64_t rows) const {
  return model::published_rows(config_, parameter, rows);
}

void CheckpointedLanguageModel::add_files(checkpoint::CheckpointWriter& writer) const {
  writer.add_text("config.json", model::to_hugging_face(config_, end_of_text_).dump(2) + "\n");
  if (tokenizer_) writer.add_text("tokenizer.json", *tokenizer_);
}

void CheckpointedLanguageModel::require_fits(const std::filesystem::path& folder) const {
  model::check_same_architecture(config_, read_model_config(folder), folder.string());
}

}  // namespace sidestream::launch
