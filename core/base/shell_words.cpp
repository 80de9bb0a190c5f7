#include "core/base/shell_words.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace sidestream::core {
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

std::vector<std::string> words_of_shell(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;  // '' is one, too
  bool in_quotes = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (!in_quotes && std::isspace(static_cast<unsigned char>(letter)) != 0) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      continue;
    }
    if (!word) word.emplace();
    if (letter == '\'')
      in_quotes = !in_quotes;
    else if (letter == '\\' && !in_quotes && at + 1 < text.size())
      *word += text[++at];
    else
      *word += letter;
  }
  if (word) words.push_back(*word);
  return words;
}

}  // namespace sidestream::core
