// Reads {"tokenizer": PATH, "special": bool, "texts": [..]} from standard input and writes {"ids":
// [[..]], "texts": [decoded as hex]}: the half of tokenizer_oracle.py that is under test.
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/data/tokenizer.hpp"

namespace {

std::string hex_of(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

nlohmann::json answer(const nlohmann::json& request) {
  using sidestream::data::SpecialTokens;
  const auto tokenizer =
      sidestream::data::open_tokenizer(request.at("tokenizer").get<std::string>());
  const auto special =
      request.at("special").get<bool>() ? SpecialTokens::kParse : SpecialTokens::kAsText;
  const auto encoder = tokenizer->make_encoder(special);
  nlohmann::json reply{{"ids", nlohmann::json::array()}, {"texts", nlohmann::json::array()}};
  for (const auto& text : request.at("texts")) {
    std::vector<std::uint32_t> ids;
    encoder->encode(text.get_ref<const std::string&>(), ids);
    reply["texts"].push_back(hex_of(tokenizer->decode(ids)));
    reply["ids"].push_back(std::move(ids));
  }
  reply["vocab_size"] = tokenizer->vocab_size();
  return reply;
}

}  // namespace

int main() {
  try {
    std::cout << answer(nlohmann::json::parse(std::cin)).dump();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
