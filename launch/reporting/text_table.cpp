#include "launch/reporting/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sidestream::launch {
namespace {

// Characters: every byte that does not continue a UTF-8 sequence.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

enum class Align { kLeft, kRight };

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (column > 0) line += "  ";
    line += padded(cells[column], widths[column], column == 0 ? Align::kLeft : Align::kRight);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Four significant digits, no exponent for the numbers of daily use.
std::string cell(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "-";
  const double size = std::abs(*value);
  if (size >= 1000) return fmt::format("{:.0f}", *value);
  return fmt::format("{:.4g}", *value);
}

std::string ratio_cell(const ComparisonRow& row) {
  if (!row.base || !row.fresh) return "-";
  if (std::max(*row.base, *row.fresh) < row.worth_a_ratio) return "-";
  const double ratio =
      row.better == Better::kHigher ? *row.fresh / *row.base : *row.base / *row.fresh;
  constexpr double kLeast = 0.005;  // "0.00x" says nothing
  return std::isfinite(ratio) && ratio >= kLeast ? fmt::format("{:.2f}x", ratio) : "-";
}

}  // namespace

std::string text_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::string& name : header) widths.push_back(width_of(name));
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size() && column < widths.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  std::string text = line_of(header, widths) + std::string(total, '-') + "\n";
  for (std::vector<std::string> row : rows) {
    row.resize(header.size());
    text += line_of(row, widths);
  }
  return text;
}

std::string comparison_table(const std::string& base_name, const std::string& fresh_name,
                             const std::vector<ComparisonRow>& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const ComparisonRow& row : rows) {
    cells.push_back({row.name, cell(row.base), cell(row.fresh), ratio_cell(row)});
  }
  return text_table({"", base_name, fresh_name, "better by"}, cells);
}

}  // namespace sidestream::launch
