// config.json as Hugging Face's transformers reads and writes it, to and from a ModelConfig.
//
// With model.safetensors beside it (parameter names and shapes of LanguageModel, "format": "pt" in
// its metadata) GPT2LMHeadModel.from_pretrained loads the folder as it is. Rows of a padded
// vocabulary are not published: a checkpoint holds the first published_rows() rows of each
// parameter, and the rest are zero. No LibTorch here.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "model/config.hpp"

namespace sidestream::model {

// end_of_text: the token that ends a text, by which generate() of transformers stops; empty: none
// is known.
nlohmann::json to_hugging_face(const ModelConfig& config,
                               std::optional<std::int64_t> end_of_text = {});

// padded_vocab_size becomes vocab_size, fused_ops its default. Throws CheckpointError naming a
// field that is missing, of another type, or asks for something that this GPT-2 does not do.
ModelConfig from_hugging_face(const nlohmann::json& json);

// Leading rows of the named parameter that belong into a checkpoint: rows, except for a padded
// embedding.
std::int64_t published_rows(const ModelConfig& config, const std::string& parameter,
                            std::int64_t rows);

// Throws CheckpointError that lists each field in which a checkpoint differs from the model to be
// trained. Dropout, padding and fused_ops may differ.
void check_same_architecture(const ModelConfig& model, const ModelConfig& checkpoint,
                             const std::string& folder);

}  // namespace sidestream::model
