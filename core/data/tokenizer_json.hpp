// Reads Hugging Face's tokenizer.json as far as it describes a byte-level BPE with GPT-2's pattern,
// and refuses everything else by name: a tokenizer that is almost understood would make wrong
// tokens without a word.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::data {

struct AddedToken {
  std::string text;
  std::uint32_t id = 0;
  bool special = false;
  bool normalized = false;  // matched after the others
};

struct BpeMerge {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t result = 0;
};

struct BpeDefinition {
  std::vector<std::string> tokens;  // by id: bytes, or the text of an added token
  std::array<std::uint32_t, 256> byte_ids{};
  std::vector<BpeMerge> merges;  // by rank
  std::vector<AddedToken> added;
  std::optional<std::uint32_t> end_of_text;
  bool add_prefix_space = false;
  bool ignore_merges = false;  // a word that is a token is taken as it is
};

// Throws DataError: no JSON (with the byte offset), a key missing or of the wrong type, ids that
// are not dense, a merge of or into an unknown token, a byte without a token, a normalizer,
// pre-tokenizer or model that is not supported.
BpeDefinition parse_tokenizer_json(std::string_view text, const std::string& file);
// The text of the file. Throws DataError.
std::string read_tokenizer_text(const std::filesystem::path& path);

}  // namespace sidestream::data
