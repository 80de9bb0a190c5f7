// Tables for the terminal: aligned columns, and the comparison of two runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

// Column 0 to the left, the others to the right, a rule under the header. Rows may be shorter than
// the header. Widths count characters of UTF-8, not bytes.
std::string text_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);

enum class Better { kHigher, kLower };

struct ComparisonRow {
  std::string name;  // with the unit: "step time, ms"
  std::optional<double> base = {};
  std::optional<double> fresh = {};
  Better better = Better::kHigher;
  double worth_a_ratio = 0;  // where both are below it, their ratio says nothing
};

// Four columns: name, the two sides, and how many times better the second is ("1.84x"; below 1 it
// is worse). What was not measured is "-".
std::string comparison_table(const std::string& base_name, const std::string& fresh_name,
                             const std::vector<ComparisonRow>& rows);

}  // namespace sidestream::launch
