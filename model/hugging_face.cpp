#include "model/hugging_face.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"

namespace sidestream::model {
namespace {

using nlohmann::json;

constexpr const char* kMlpType = "sidestream_mlp";

[[noreturn]] void refuse(const std::string& field, const std::string& expected,
                         const std::string& found) {
  throw core::CheckpointError(
      fmt::format("config.json: {}: expected {}, found {}", field, expected, found));
}

template <typename T>
T required(const json& object, const char* field, const char* type) {
  const auto entry = object.find(field);
  if (entry == object.end()) refuse(field, type, "nothing");
  try {
    return entry->get<T>();
  } catch (const json::exception&) {
    refuse(field, type, entry->dump());
  }
}

std::int64_t required_size(const json& object, const char* field) {
  const auto entry = object.find(field);
  if (entry == object.end() || !entry->is_number_integer()) {
    refuse(field, "a whole number", entry == object.end() ? "nothing" : entry->dump());
  }
  return required<std::int64_t>(object, field, "a whole number");
}

// A field that may be missing, and must have this value where it is there.
void must_equal(const json& object, const char* field, const json& expected) {
  const auto entry = object.find(field);
  if (entry == object.end() || *entry == expected) return;
  refuse(field, expected.dump() + " (nothing else is supported)", entry->dump());
}

double one_dropout(const json& object) {
  const double dropout = object.value("resid_pdrop", 0.1);
  for (const char* field : {"embd_pdrop", "attn_pdrop"}) {
    const double other = object.value(field, 0.1);
    if (other != dropout)
      refuse(field, fmt::format("{} as resid_pdrop", dropout), fmt::format("{}", other));
  }
  return dropout;
}

void check_supported(const json& object) {
  must_equal(object, "activation_function", "gelu_new");
  must_equal(object, "layer_norm_epsilon", 1e-5);
  must_equal(object, "scale_attn_weights", true);
  must_equal(object, "scale_attn_by_inverse_layer_idx", false);
  must_equal(object, "reorder_and_upcast_attn", false);
  must_equal(object, "add_cross_attention", false);
  must_equal(object, "tie_word_embeddings", true);
  const auto inner = object.find("n_inner");
  if (inner != object.end() && !inner->is_null() && *inner != 4 * required_size(object, "n_embd")) {
    refuse("n_inner", "null or 4 n_embd", inner->dump());
  }
}

struct Field {
  const char* name;
  std::int64_t model, checkpoint;
};

}  // namespace

json to_hugging_face(const ModelConfig& config, std::optional<std::int64_t> end_of_text) {
  const json end = end_of_text ? json(*end_of_text) : json();
  const bool mlp = config.family == "mlp";
  return {{"architectures", json::array({mlp ? "SidestreamMlp" : "GPT2LMHeadModel"})},
          {"model_type", mlp ? kMlpType : "gpt2"},
          {"vocab_size", config.vocab_size},
          {"n_positions", config.context_length},
          {"n_ctx", config.context_length},
          {"n_embd", config.width},
          {"n_layer", config.layers},
          {"n_head", config.heads},
          {"n_inner", nullptr},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"initializer_range", 0.02},
          {"resid_pdrop", config.dropout},
          {"embd_pdrop", config.dropout},
          {"attn_pdrop", config.dropout},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"reorder_and_upcast_attn", false},
          {"tie_word_embeddings", true},
          {"bos_token_id", end},
          {"eos_token_id", end}};
}

ModelConfig from_hugging_face(const json& object) {
  if (!object.is_object()) refuse("the file", "an object", object.type_name());
  const auto type = required<std::string>(object, "model_type", "a string");
  if (type != "gpt2" && type != kMlpType) refuse("model_type", "gpt2", type);
  check_supported(object);
  ModelConfig config;
  config.family = type == "gpt2" ? "gpt2" : "mlp";
  config.layers = required_size(object, "n_layer");
  config.heads = required_size(object, "n_head");
  config.width = required_size(object, "n_embd");
  config.vocab_size = required_size(object, "vocab_size");
  config.padded_vocab_size = config.vocab_size;
  config.context_length = required_size(object, "n_positions");
  try {
    config.dropout = one_dropout(object);
    config.validate();
  } catch (const json::exception& error) {
    throw core::CheckpointError("config.json: " + core::json_words(error));
  } catch (const core::ConfigError& error) {
    throw core::CheckpointError(fmt::format("config.json: {}", error.what()));
  }
  return config;
}

std::int64_t published_rows(const ModelConfig& config, const std::string& parameter,
                            std::int64_t rows) {
  return parameter == "transformer.wte.weight" ? config.vocab_size : rows;
}

void check_same_architecture(const ModelConfig& model, const ModelConfig& checkpoint,
                             const std::string& folder) {
  std::vector<std::string> differences;
  if (model.family != checkpoint.family)
    differences.push_back(
        fmt::format("family: {} there, {} configured", checkpoint.family, model.family));
  const Field fields[] = {{"layers", model.layers, checkpoint.layers},
                          {"heads", model.heads, checkpoint.heads},
                          {"width", model.width, checkpoint.width},
                          {"vocab_size", model.vocab_size, checkpoint.vocab_size},
                          {"context_length", model.context_length, checkpoint.context_length}};
  for (const Field& field : fields) {
    if (field.model == field.checkpoint) continue;
    differences.push_back(
        fmt::format("{}: {} there, {} configured", field.name, field.checkpoint, field.model));
  }
  if (differences.empty()) return;
  throw core::CheckpointError(fmt::format(
      "{}: the weights are of another model: {}. Set these flags as there, or take other weights",
      folder, fmt::join(differences, "; ")));
}

}  // namespace sidestream::model
