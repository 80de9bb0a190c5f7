// Files of the kernel: a line or a few, whose size is not known before they are read.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace sidestream::core {

// Empty when there is none.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string first_line_of(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  return text.substr(0, text.find('\n'));
}

// Nothing for what does not begin with a number ("max").
inline std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

inline std::optional<std::int64_t> number_of(const std::filesystem::path& path) {
  return number_in(first_line_of(path));
}

}  // namespace sidestream::core
