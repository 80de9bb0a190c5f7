// Checkpoints of the trainer's language model: with config.json and tokenizer.json, a folder that
// Hugging Face's transformers loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "launch/trainer/checkpointed_model.hpp"
#include "model/config.hpp"

namespace sidestream::launch {

class CheckpointedLanguageModel final : public CheckpointedModel {
 public:
  // tokenizer: the text of the tokenizer.json that is written beside the weights; null: none.
  // end_of_text: of the data; empty: not known.
  explicit CheckpointedLanguageModel(const model::ModelConfig& config,
                                     std::shared_ptr<const std::string> tokenizer = {},
                                     std::optional<std::int64_t> end_of_text = {});

  nlohmann::json identity() const override;
  std::int64_t stored_rows(const std::string& parameter, std::int64_t rows) const override;
  void add_files(checkpoint::CheckpointWriter& writer) const override;
  void require_fits(const std::filesystem::path& folder) const override;

 private:
  model::ModelConfig config_;
  std::shared_ptr<const std::string> tokenizer_;
  std::optional<std::int64_t> end_of_text_;
};

}  // namespace sidestream::launch
