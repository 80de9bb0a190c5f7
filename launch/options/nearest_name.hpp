// The name that was probably meant: for messages about a word that is unknown.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sidestream::launch {

// " Did you mean NAME?" with the closest name by edit distance (insert, delete, replace, swap of
// neighbours), or the empty string when nothing is close. `prefix` is put before the name ("--").
std::string did_you_mean(std::string_view word, std::span<const std::string> names,
                         std::string_view prefix = "");

}  // namespace sidestream::launch
