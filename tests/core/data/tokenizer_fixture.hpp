// A small tokenizer.json, built here so that tests can damage one thing at a time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/data/byte_alphabet.hpp"

namespace sidestream::data::testing {

// 256 bytes, the given merges, and <|endoftext|> as the last id. Merges are in the byte-level
// spelling.
inline nlohmann::json small_tokenizer(
    const std::vector<std::pair<std::string, std::string>>& merges = {
        {"t", "h"}, {"th", "e"}, {"\u0120", "the"}, {"e", "r"}}) {
  nlohmann::json vocab = nlohmann::json::object();
  std::uint32_t id = 0;
  for (const std::string& spelled : byte_alphabet()) vocab[spelled] = id++;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [left, right] : merges) {
    vocab[left + right] = id++;
    list.push_back({left, right});
  }
  vocab["<|endoftext|>"] = id;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens",
           {{{"id", id},
             {"content", "<|endoftext|>"},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"vocab", vocab},
            {"merges", list}}}};
}

}  // namespace sidestream::data::testing
