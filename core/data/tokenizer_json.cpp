#include "core/data/tokenizer_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/shallow_json.hpp"
#include "core/data/byte_alphabet.hpp"

namespace sidestream::data {
namespace {

using core::DataError;
using nlohmann::json;

constexpr std::uint64_t kMaxVocab = std::uint64_t{1} << 24;

// Spelled token -> id. Keys live in the JSON document.
using Vocabulary = std::unordered_map<std::string_view, std::uint32_t>;

class Reader {
 public:
  Reader(const json& root, const std::string& file) : root_(root), file_(file) {}

  BpeDefinition read() {
    if (!root_.is_object()) fail("", "an object", root_.type_name());
    require_absent(root_, "normalizer");
    require_absent(root_, "truncation");
    require_absent(root_, "padding");
    read_pre_tokenizer();
    require_byte_level_or_absent("post_processor");
    require_byte_level_or_absent("decoder");
    const json& model = member(root_, "model", json::value_t::object);
    read_model_options(model);
    read_vocabulary(model);
    read_added_tokens();
    place_tokens();
    read_bytes();
    read_merges(model);
    return std::move(definition_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& found) const {
    throw DataError({key.empty() ? file_ : file_ + ": " + key, {}, expected, found});
  }

  const json* find(const json& object, const char* key) const {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  const json& member(const json& object, const char* key, json::value_t type) const {
    const json* value = find(object, key);
    if (value == nullptr) fail(key, std::string("a key of type ") + json(type).type_name(), "none");
    if (value->type() != type) fail(key, json(type).type_name(), value->type_name());
    return *value;
  }

  bool flag(const json& object, const char* key, bool missing) const {
    const json* value = find(object, key);
    if (value == nullptr) return missing;
    if (!value->is_boolean()) fail(key, "true or false", value->type_name());
    return value->get<bool>();
  }

  std::string type_of(const json& object, const char* key) const {
    if (!object.is_object()) fail(key, "an object", object.type_name());
    return member(object, "type", json::value_t::string).get<std::string>();
  }

  void require_absent(const json& object, const char* key) const {
    const json* value = find(object, key);
    if (value == nullptr) return;
    const bool named =
        value->is_object() && value->contains("type") && (*value)["type"].is_string();
    fail(key, "null, the only one that is supported",
         named ? (*value)["type"].get<std::string>() : value->type_name());
  }

  void require_byte_level_or_absent(const char* key) const {
    const json* value = find(root_, key);
    if (value != nullptr && type_of(*value, key) != "ByteLevel") {
      fail(key, "ByteLevel or null, the only ones that are supported", type_of(*value, key));
    }
  }

  void read_pre_tokenizer() {
    const json* value = find(root_, "pre_tokenizer");
    const std::string type = value == nullptr ? "none" : type_of(*value, "pre_tokenizer");
    if (type != "ByteLevel")
      fail("pre_tokenizer", "ByteLevel, the only one that is supported", type);
    if (!flag(*value, "use_regex", true)) {
      fail("pre_tokenizer.use_regex", "true (GPT-2's pattern, the only one that is supported)",
           "false");
    }
    definition_.add_prefix_space = flag(*value, "add_prefix_space", true);
  }

  void read_model_options(const json& model) {
    if (find(model, "type") != nullptr && type_of(model, "model") != "BPE") {
      fail("model.type", "BPE, the only one that is supported", type_of(model, "model"));
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const json* value = find(model, key);
      if (value != nullptr && *value != "")
        fail(std::string("model.") + key, "null or empty", value->dump());
    }
    const json* dropout = find(model, "dropout");
    if (dropout != nullptr && *dropout != 0.0) fail("model.dropout", "null or 0", dropout->dump());
    if (flag(model, "byte_fallback", false)) fail("model.byte_fallback", "false", "true");
    definition_.ignore_merges = flag(model, "ignore_merges", false);
  }

  std::uint32_t id_of(const json& value, std::string_view list, std::string_view name) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMaxVocab) {
      fail(std::string(list) + ": " + std::string(name),
           "a token id from 0 to " + std::to_string(kMaxVocab - 1), value.dump());
    }
    return value.get<std::uint32_t>();
  }

  void read_vocabulary(const json& model) {
    const json& vocab = member(model, "vocab", json::value_t::object);
    vocabulary_.reserve(vocab.size());
    for (const auto& [token, id] : vocab.items()) {
      vocabulary_.emplace(token, id_of(id, "model.vocab", token));
    }
  }

  void read_added_tokens() {
    if (find(root_, "added_tokens") == nullptr) return;
    std::unordered_set<std::string> seen;
    for (const json& entry : member(root_, "added_tokens", json::value_t::array)) {
      if (!entry.is_object()) fail("added_tokens", "objects", entry.type_name());
      AddedToken token{.text = member(entry, "content", json::value_t::string).get<std::string>(),
                       .id = id_of(entry.value("id", json()), "added_tokens", "id"),
                       .special = flag(entry, "special", false),
                       .normalized = flag(entry, "normalized", false)};
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (flag(entry, key, false))
          fail("added_tokens: " + token.text, std::string(key) + " false", "true");
      }
      if (token.text.empty()) fail("added_tokens", "tokens with text", "an empty one");
      if (!seen.insert(token.text).second)
        fail("added_tokens", "each token once", "twice " + token.text);
      definition_.added.push_back(std::move(token));
    }
  }

  void place(std::uint32_t id, std::string bytes, std::vector<bool>& taken) {
    if (id >= taken.size()) {
      fail("model.vocab",
           "dense ids: " + std::to_string(taken.size()) + " tokens with ids below that number",
           "id " + std::to_string(id));
    }
    if (taken[id]) fail("model.vocab", "each id once", "two tokens with id " + std::to_string(id));
    taken[id] = true;
    definition_.tokens[id] = std::move(bytes);
  }

  void place_tokens() {
    std::size_t count = vocabulary_.size();
    std::unordered_set<std::string_view> added_texts;
    for (const AddedToken& token : definition_.added) {
      const auto found = vocabulary_.find(token.text);
      if (found != vocabulary_.end() && found->second != token.id) {
        fail("added_tokens: " + token.text,
             "id " + std::to_string(found->second) + " as in model.vocab",
             std::to_string(token.id));
      }
      added_texts.insert(token.text);
      count += found == vocabulary_.end();
    }
    definition_.tokens.resize(count);
    std::vector<bool> taken(count, false);
    for (const AddedToken& token : definition_.added) place(token.id, token.text, taken);
    for (const auto& [spelled, id] : vocabulary_) {
      if (!added_texts.contains(spelled)) place(id, bytes_of(spelled), taken);
    }
    find_end_of_text();
  }

  std::string bytes_of(std::string_view spelled) const {
    auto bytes = spelling_.bytes_of(spelled);
    if (!bytes) {
      fail("model.vocab", "tokens spelled in the byte-level alphabet of GPT-2",
           json(spelled).dump());
    }
    return *std::move(bytes);
  }

  void find_end_of_text() {
    for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
      for (const AddedToken& token : definition_.added) {
        if (token.text != name) continue;
        definition_.end_of_text = token.id;
        return;
      }
    }
  }

  void read_bytes() {
    const auto alphabet = byte_alphabet();
    for (std::size_t byte = 0; byte < alphabet.size(); ++byte) {
      const auto found = vocabulary_.find(alphabet[byte]);
      if (found == vocabulary_.end()) {
        fail("model.vocab", "a token for each byte (train with the byte-level initial alphabet)",
             "none for byte " + std::to_string(byte) + ", spelled \"" + alphabet[byte] + "\"");
      }
      definition_.byte_ids[byte] = found->second;
    }
  }

  std::uint32_t known(const std::string& token, std::size_t rank) const {
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) {
      fail("model.merges[" + std::to_string(rank) + "]", "tokens of model.vocab",
           "unknown \"" + token + "\"");
    }
    return found->second;
  }

  // Older files: "left right"; newer ones: ["left", "right"].
  std::pair<std::string, std::string> halves(const json& merge, std::size_t rank) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    fail("model.merges[" + std::to_string(rank) + "]", "\"left right\" or [\"left\", \"right\"]",
         merge.dump());
  }

  void read_merges(const json& model) {
    const json& merges = member(model, "merges", json::value_t::array);
    std::unordered_set<std::uint64_t> seen;
    definition_.merges.reserve(merges.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const auto [left, right] = halves(merges[rank], rank);
      const BpeMerge merge{known(left, rank), known(right, rank), known(left + right, rank)};
      if (!seen.insert((std::uint64_t{merge.left} << 32) | merge.right).second) {
        fail("model.merges[" + std::to_string(rank) + "]", "each pair once",
             left + " " + right + " again");
      }
      definition_.merges.push_back(merge);
    }
  }

  const json& root_;
  const std::string& file_;
  ByteSpelling spelling_;
  Vocabulary vocabulary_;
  BpeDefinition definition_;
};

}  // namespace

BpeDefinition parse_tokenizer_json(std::string_view text, const std::string& file) {
  try {
    const json root = core::parse_shallow_json(text);
    return Reader(root, file).read();
  } catch (const core::NestingError& error) {
    throw DataError({file, {}, error.what(), "more"});
  } catch (const json::exception& error) {
    throw DataError(
        core::json_fault({.file = file, .expected = "JSON of a tokenizer"}, text, error));
  }
}

std::string read_tokenizer_text(const std::filesystem::path& path) {
  constexpr std::size_t kLimitBytes = std::size_t{256} << 20;
  try {
    return core::read_file(path, kLimitBytes);
  } catch (const core::Error& error) {
    throw DataError("tokenizer: " + std::string(error.what()) +
                    " (use `bytes` or the path of a tokenizer.json)");
  }
}

}  // namespace sidestream::data
