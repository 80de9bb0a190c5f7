#include "core/data/tokenizer_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "core/base/error.hpp"
#include "tests/core/data/tokenizer_fixture.hpp"

namespace sidestream::data {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::small_tokenizer;

std::string error_of(const std::string& text) {
  try {
    parse_tokenizer_json(text, "t.json");
  } catch (const core::DataError& error) {
    return error.what();
  }
  return "";
}

std::string error_after(const std::function<void(json&)>& damage) {
  json definition = small_tokenizer();
  damage(definition);
  return error_of(definition.dump());
}

TEST(TokenizerJsonTest, parse_good) {
  const BpeDefinition definition = parse_tokenizer_json(small_tokenizer().dump(), "t.json");

  EXPECT_EQ(definition.tokens.size(), 261u);
  EXPECT_EQ(definition.tokens[258], " the");
  EXPECT_EQ(definition.byte_ids[' '], 32u);
  EXPECT_EQ(definition.merges.size(), 4u);
  EXPECT_EQ(definition.end_of_text, 260u);
}

TEST(TokenizerJsonTest, parse_mergesAsStrings) {
  json definition = small_tokenizer();
  definition["model"]["merges"] = {"t h", "th e", "\u0120 the", "e r"};

  EXPECT_EQ(parse_tokenizer_json(definition.dump(), "t.json").merges.size(), 4u);
}

TEST(TokenizerJsonTest, parse_notJson) {
  EXPECT_THAT(error_of("{\"model\": [1, 2"), HasSubstr("t.json, byte 15"));
  EXPECT_THAT(error_of(""), HasSubstr("t.json, byte 0"));
  EXPECT_THAT(error_of("[]"), HasSubstr("found array"));
  EXPECT_NE(error_of(std::string(100000, '[')), "");
}

// A value that is printed because it is refused: its printer calls itself for each level.
TEST(TokenizerJsonTest, parse_deepValue) {
  const std::string good = small_tokenizer().dump();
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  const std::string model = "\"model\":{";
  const auto at = good.find(model) + model.size();

  EXPECT_THAT(error_of(good.substr(0, at) + "\"dropout\":" + deep + "," + good.substr(at)),
              HasSubstr("t.json: expected at most 32 nested levels"));
}

TEST(TokenizerJsonTest, parse_missingOrOfTheWrongType) {
  EXPECT_THAT(error_after([](json& d) { d.erase("model"); }), HasSubstr("t.json: model: expected"));
  EXPECT_THAT(error_after([](json& d) { d["model"] = 3; }), HasSubstr("found number"));
  EXPECT_THAT(error_after([](json& d) { d["model"].erase("vocab"); }), HasSubstr("vocab"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["merges"] = "x"; }),
              HasSubstr("merges: expected array"));
  EXPECT_THAT(error_after([](json& d) { d["added_tokens"] = json::object(); }),
              HasSubstr("added_tokens"));
  EXPECT_THAT(error_after([](json& d) { d["added_tokens"][0] = 1; }), HasSubstr("added_tokens"));
  EXPECT_THAT(error_after([](json& d) { d["added_tokens"][0]["id"] = -1; }), HasSubstr("id"));
}

TEST(TokenizerJsonTest, parse_unsupportedKinds) {
  EXPECT_THAT(error_after([](json& d) {
                d["normalizer"] = {{"type", "NFC"}};
              }),
              HasSubstr("found NFC"));
  EXPECT_THAT(error_after([](json& d) {
                d["pre_tokenizer"] = {{"type", "Metaspace"}};
              }),
              HasSubstr("found Metaspace"));
  EXPECT_THAT(error_after([](json& d) { d["pre_tokenizer"] = nullptr; }), HasSubstr("found none"));
  EXPECT_THAT(error_after([](json& d) { d["pre_tokenizer"]["use_regex"] = false; }),
              HasSubstr("use_regex"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["type"] = "Unigram"; }),
              HasSubstr("found Unigram"));
  EXPECT_THAT(error_after([](json& d) {
                d["post_processor"] = {{"type", "TemplateProcessing"}};
              }),
              HasSubstr("found TemplateProcessing"));
  EXPECT_THAT(error_after([](json& d) {
                d["decoder"] = {{"type", "WordPiece"}};
              }),
              HasSubstr("found WordPiece"));
  EXPECT_THAT(error_after([](json& d) {
                d["truncation"] = {{"max_length", 5}};
              }),
              HasSubstr("truncation"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["dropout"] = 0.1; }), HasSubstr("dropout"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["byte_fallback"] = true; }),
              HasSubstr("byte_fallback"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }),
              HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(error_after([](json& d) { d["added_tokens"][0]["lstrip"] = true; }),
              HasSubstr("lstrip"));
}

TEST(TokenizerJsonTest, parse_badVocabulary) {
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["the"] = 400; }),
              HasSubstr("dense ids"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["the"] = 5; }),
              HasSubstr("two tokens with id 5"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["the"] = -5; }), HasSubstr("token id"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["the"] = 1e30; }),
              HasSubstr("token id"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["vocab"]["a b"] = 261; }),
              HasSubstr("alphabet"));
  EXPECT_THAT(error_after([](json& d) { d["added_tokens"][0]["id"] = 3; }),
              HasSubstr("id 260 as in model.vocab"));
  EXPECT_THAT(error_after([](json& d) {
                d["model"]["vocab"].erase("a");
                d["model"]["vocab"]["aa"] = 97;
              }),
              HasSubstr("none for byte 97"));
}

TEST(TokenizerJsonTest, parse_badMerges) {
  EXPECT_THAT(error_after([](json& d) {
                d["model"]["merges"].push_back({"x", "yy"});
              }),
              HasSubstr("merges[4]: expected tokens of model.vocab, found unknown \"yy\""));
  EXPECT_THAT(error_after([](json& d) {
                d["model"]["merges"].push_back({"x", "y"});
              }),
              HasSubstr("unknown \"xy\""));
  EXPECT_THAT(error_after([](json& d) {
                d["model"]["merges"].push_back({"t", "h"});
              }),
              HasSubstr("each pair once"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["merges"].push_back("t h e"); }),
              HasSubstr("merges[4]"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["merges"].push_back({"t"}); }),
              HasSubstr("merges[4]"));
  EXPECT_THAT(error_after([](json& d) { d["model"]["merges"].push_back(7); }),
              HasSubstr("merges[4]"));
}

// Whatever is damaged: a definition or a DataError, never another exception or a crash.
TEST(TokenizerJsonTest, parse_randomDamage) {
  const std::string good = small_tokenizer().dump();
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (std::uint32_t i = 0; i <= random() % 3; ++i)
      text[random() % text.size()] = static_cast<char>(random());
    if (round % 5 == 0) text.resize(random() % text.size());
    refused += !error_of(text).empty();
  }
  EXPECT_GT(refused, 1000);
}

// Damage that is still JSON: every value replaced by values of other types.
TEST(TokenizerJsonTest, parse_valuesOfOtherTypes) {
  const json good = small_tokenizer();
  const std::vector<json> others{
      nullptr, true, -1, 1.5, "x", json::array({1}), json::object({{"type", 3}})};
  int read = 0;
  const json flat = good.flatten();
  for (const auto& [path, value] : flat.items()) {
    if (path.starts_with("/model/vocab/") && path.size() < 18) continue;  // 256 of a kind
    const json::json_pointer pointer(path);
    for (const json& other : others) {
      json damaged = good;
      damaged[pointer] = other;
      read += error_of(damaged.dump()).empty();
      damaged = good;
      damaged[pointer.parent_pointer()] = other;
      read += error_of(damaged.dump()).empty();
    }
  }
  EXPECT_GT(read, 10);  // such as `trim_offsets`, which changes nothing
}

}  // namespace
}  // namespace sidestream::data
