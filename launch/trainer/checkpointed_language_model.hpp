// Checkpoints of the trainer's language model: with config.json and tokenizer.json, a folder that
// Hugging Face's transformers loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "launch/trainer/checkpointed_model.hpp"
#include "model/config.hpp"

namespace sidestream::launch {

class CheckpointedLanguageModel final : public CheckpointedModel {
 public:
  // tokenizer: copied beside the weights; empty: none. end_of_text: of the data; empty: not known.
  explicit CheckpointedLanguageModel(const model::ModelConfig& config,
                                     std::filesystem::path tokenizer = {},
                                     std::optional<std::int64_t> end_of_text = {});

  nlohmann::json identity() const override;
  std::int64_t stored_rows(const std::string& parameter, std::int64_t rows) const override;
  void add_files(checkpoint::CheckpointWriter& writer) const override;
  void require_fits(const std::filesystem::path& folder) const override;

 private:
  model::ModelConfig config_;
  std::filesystem::path tokenizer_;
  std::optional<std::int64_t> end_of_text_;
};

}  // namespace sidestream::launch
