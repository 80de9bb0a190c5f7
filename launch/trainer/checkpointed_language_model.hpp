// Checkpoints of the trainer's language model: with config.json and tokenizer.json, a folder that
// Hugging Face's transformers loads.
#pragma once

#include <filesystem>

#include "launch/trainer/checkpointed_model.hpp"
#include "model/config.hpp"

namespace sidestream::launch {

class CheckpointedLanguageModel final : public CheckpointedModel {
 public:
  // tokenizer: copied beside the weights; empty: none.
  explicit CheckpointedLanguageModel(const model::ModelConfig& config,
                                     std::filesystem::path tokenizer = {});

  nlohmann::json identity() const override;
  std::int64_t stored_rows(const std::string& parameter, std::int64_t rows) const override;
  void add_files(checkpoint::CheckpointWriter& writer) const override;
  void require_fits(const std::filesystem::path& folder) const override;

 private:
  model::ModelConfig config_;
  std::filesystem::path tokenizer_;
};

}  // namespace sidestream::launch
