// Words of a command as a shell takes them: what is printed can be called again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sidestream::core {

// "--base '' --common '--data a b'"
std::string shell_words(const std::vector<std::string>& words);

// The words that shell_words() was given. Nothing else of a shell counts: no variable, no comment,
// no double quote.
std::vector<std::string> words_of_shell(std::string_view text);

}  // namespace sidestream::core
