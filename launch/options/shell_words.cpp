#include "launch/options/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace sidestream::launch {
namespace {

bool is_plain(char letter) {
  constexpr std::string_view kPlain = "-_./:=,+@%";
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         kPlain.find(letter) != std::string_view::npos;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char letter : word)
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

}  // namespace

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

}  // namespace sidestream::launch
