// Token files for tests, built byte by byte so that the writer under test has no part in them.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sidestream::data::testing {

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <typename Token>
std::string raw_tokens(const std::vector<Token>& tokens) {
  std::string bytes(tokens.size() * sizeof(Token), '\0');
  std::memcpy(bytes.data(), tokens.data(), bytes.size());
  return bytes;
}

template <typename Token>
std::string llm_c_bytes(const std::vector<Token>& tokens) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = sizeof(Token) == 2 ? 20240520 : 20240801;
  header[1] = sizeof(Token) == 2 ? 1 : 7;
  header[2] = static_cast<std::int32_t>(tokens.size());
  return raw_tokens(header) + raw_tokens(tokens);
}

// first, first + 1, ... first + count - 1
inline std::vector<std::uint16_t> counting(std::uint16_t first, std::size_t count) {
  std::vector<std::uint16_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::uint16_t>(first + i);
  return tokens;
}

}  // namespace sidestream::data::testing
