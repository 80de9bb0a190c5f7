#include "launch/options/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sidestream::launch {
namespace {

// Optimal string alignment: Levenshtein, with a swap of two neighbours as one step.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return cost[i * columns + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

// A word that begins a name is as good as one typing error.
std::size_t distance(std::string_view word, std::string_view name) {
  if (word.size() >= 3 && name.substr(0, word.size()) == word) return 1;
  return edit_distance(word, name);
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> names,
                         std::string_view prefix) {
  if (word.size() > 64) return "";
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::size_t candidate = distance(word, name);
    if (candidate >= best_distance) continue;
    best_distance = candidate;
    best = &name;
  }
  return best == nullptr ? "" : fmt::format(" Did you mean {}{}?", prefix, *best);
}

}  // namespace sidestream::launch
