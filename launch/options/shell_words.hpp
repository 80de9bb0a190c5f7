// Words of a command as a shell takes them: what is printed can be called again.
#pragma once

#include <string>
#include <vector>

namespace sidestream::launch {

// "--base '' --common '--data a b'"
std::string shell_words(const std::vector<std::string>& words);

}  // namespace sidestream::launch
