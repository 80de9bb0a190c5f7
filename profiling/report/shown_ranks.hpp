// Which ranks a table for people has a row of, where there are many.
#pragma once

#include <algorithm>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sidestream::report {

constexpr std::size_t kShownRanks = 16;

template <typename Value>
struct ShownRanks {
  std::vector<std::pair<int, Value>> rows;  // in the order of the ranks
  std::string title;                        // which of them, behind the title; empty: all
};

// All of a few; of many those at both ends of `figure`, which is optional, and of those where it is
// nothing as many as there is room for. `ends`: what the title says of both ends ("wait least and
// most").
template <typename Value, typename Figure>
ShownRanks<Value> shown_ranks(const std::map<int, Value>& ranks, const Figure& figure,
                              std::string_view ends) {
  ShownRanks<Value> shown{.rows = {ranks.begin(), ranks.end()}, .title = {}};
  auto& rows = shown.rows;
  if (rows.size() <= kShownRanks) return shown;
  const auto of_row = [&](const auto& row) { return figure(row.second); };
  const auto unknown = std::ranges::stable_partition(
      rows, [](const auto& value) { return value.has_value(); }, of_row);
  const auto known = std::ranges::subrange(rows.begin(), unknown.begin());
  std::ranges::stable_sort(known, {}, of_row);
  const auto known_ranks = static_cast<std::ptrdiff_t>(known.size());
  const bool all_are_known = unknown.empty();
  std::ranges::rotate(rows.begin() + known_ranks / 2, unknown.begin(), rows.end());
  rows.erase(rows.begin() + kShownRanks / 2, rows.end() - kShownRanks / 2);
  std::ranges::sort(rows, {}, [](const auto& row) { return row.first; });
  shown.title =
      ", the " + std::to_string(rows.size()) + " of " + std::to_string(ranks.size()) + " that ";
  shown.title += known_ranks == 0 ? "come first and last" : ends;
  if (known_ranks > 0 && !all_are_known) shown.title += ", as far as that is known";
  shown.title += "; --csv and --json have all";
  return shown;
}

}  // namespace sidestream::report
