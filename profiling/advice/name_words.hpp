// Words in the names of kernels and operators.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace sidestream::advice {

template <typename Words>
bool has_any(std::string_view name, const Words& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

inline bool has(std::string_view name, std::initializer_list<std::string_view> words) {
  return has_any(name, words);
}

}  // namespace sidestream::advice
