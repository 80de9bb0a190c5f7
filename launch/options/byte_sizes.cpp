#include "launch/options/byte_sizes.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;

struct Unit {
  char letter;
  int shift;
};
constexpr std::array kUnits = {Unit{'g', 30}, Unit{'m', 20}, Unit{'k', 10}};

// How far a number before this letter is shifted; nothing for a letter that is none of them.
std::optional<int> shift_of(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix.size() > 1) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (suffix.front() == unit.letter || suffix.front() == unit.letter - 'a' + 'A')
      return unit.shift;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> size_in(std::string_view word) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || number == 0) return std::nullopt;
  const auto shift = shift_of({rest, static_cast<std::size_t>(end - rest)});
  if (!shift || number > kLargest >> *shift) return std::nullopt;
  return number << *shift;
}

}  // namespace

std::vector<std::size_t> parse_byte_sizes(std::string_view text) {
  std::vector<std::size_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const auto size = size_in(word);
    if (!size)
      throw core::ConfigError(
          fmt::format("expected sizes in bytes with commas between them, such as 4k,25m,1g (k, m, "
                      "g: times 1024, 1024^2, 1024^3; from 1 to 1024g), found '{}'{}",
                      word, word == text ? "" : fmt::format(" in '{}'", text)));
    sizes.push_back(*size);
    begin = end + 1;
  }
  return sizes;
}

std::string byte_size_text(std::size_t bytes) {
  for (const Unit& unit : kUnits) {
    const std::size_t whole = bytes >> unit.shift;
    if (whole > 0 && whole << unit.shift == bytes) return fmt::format("{}{}", whole, unit.letter);
  }
  return fmt::format("{}", bytes);
}

std::string byte_sizes_text(const std::vector<std::size_t>& sizes) {
  std::string text;
  for (const std::size_t size : sizes) text += (text.empty() ? "" : ",") + byte_size_text(size);
  return text;
}

}  // namespace sidestream::launch
