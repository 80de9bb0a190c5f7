#include "profiling/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sidestream::report {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 12;

bool continues(char one) { return (static_cast<unsigned char>(one) & 0xC0u) == 0x80u; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char one) { return !continues(one); }));
}

std::string cut(const std::string& text, std::size_t width) {
  if (width_of(text) <= width || text.size() <= width) return text;
  const std::size_t tail = (width - 3) / 3;
  std::size_t head = width - 3 - tail, rest = text.size() - tail;
  while (head > 0 && continues(text[head])) --head;
  while (rest < text.size() && continues(text[rest])) ++rest;
  return text.substr(0, head) + "..." + text.substr(rest);
}

enum class Side { kLeft, kRight };

std::string padded(const std::string& text, std::size_t width, Side side) {
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return side == Side::kLeft ? text + blanks : blanks + text;
}

// Doubles with as many digits as it takes to read the same number back.
std::string plain_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
  return "";
}

std::vector<std::size_t> widths_of(const Table& table, std::size_t limit) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(width_of(name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], width_of(plain_text(row[i])));
  }
  std::size_t others = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) others += widths[i] + kGap;
  if (!widths.empty() && widths[0] + others > limit)
    widths[0] = std::max(kNarrowest, limit - std::min(limit, others));
  return widths;
}

std::string line_of(const Row& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = i < cells.size() ? plain_text(cells[i]) : "";
    if (i > 0) line += std::string(kGap, ' ');
    line += i == 0 ? padded(cut(cell, widths[0]), widths[0], Side::kLeft)
                   : padded(cell, widths[i], Side::kRight);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char one : cell) text += one == '"' ? std::string("\"\"") : std::string(1, one);
  return text + "\"";
}

template <std::size_t Count>
std::string scaled(double value, double base, const std::array<const char*, Count>& units) {
  std::size_t unit = 0;
  for (; std::abs(value) >= base && unit + 1 < Count; ++unit) value /= base;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::optional<double> number_in(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  return std::nullopt;
}

Cell with_unit(const std::string& column, const Cell& cell) {
  constexpr std::size_t kWidestText = 32;
  if (const auto* text = std::get_if<std::string>(&cell)) return cut(*text, kWidestText);
  const std::optional<double> value = number_in(cell);
  if (!value) return cell;
  if (column.ends_with("_ns")) return duration_text(*value);
  if (column == "bytes" || column.ends_with("_bytes")) return bytes_text(*value);
  if (column.ends_with("_per_s") && !column.ends_with("gb_per_s")) return rate_text(*value);
  if (column.ends_with("share")) return percent_text(*value);
  if (std::holds_alternative<double>(cell)) return fmt::format("{:.4g}", *value);
  return cell;
}

}  // namespace

std::string text_of(const Table& table, const TextStyle& style) {
  const std::vector<std::size_t> widths = widths_of(table, style.width_columns);
  std::string text = style.color ? "\033[1m" + table.title + "\033[0m\n" : table.title + "\n";
  std::string header = line_of({table.header.begin(), table.header.end()}, widths);
  header.pop_back();
  text += style.color ? "\033[2m" + header + "\033[0m\n" : header + "\n";
  for (const auto& row : table.rows) text += line_of(row, widths);
  return text;
}

std::string csv_of_row(const Row& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += (i == 0 ? "" : ",") + quoted(plain_text(cells[i]));
  return line + "\r\n";
}

std::string csv_of(const Table& table) {
  std::string text = csv_of_row({table.header.begin(), table.header.end()});
  for (const auto& row : table.rows) text += csv_of_row(row);
  return text;
}

Table readable(const Table& table, std::size_t rows) {
  Table text{.title = table.title, .header = table.header, .rows = {}};
  for (std::size_t i = 0; i < std::min(rows, table.rows.size()); ++i) {
    Row& row = text.rows.emplace_back(table.rows[i]);
    for (std::size_t column = 0; column < std::min(row.size(), table.header.size()); ++column)
      row[column] = column == 0 ? row[column] : with_unit(table.header[column], row[column]);
  }
  if (table.rows.size() > rows)
    text.title += fmt::format(" (the first {} of {} rows)", rows, table.rows.size());
  return text;
}

std::string duration_text(double nanoseconds) {
  return scaled<4>(nanoseconds, 1000, {"ns", "us", "ms", "s"});
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string bytes_text(double bytes) {
  return scaled<5>(bytes, 1000, {"B", "KB", "MB", "GB", "TB"});
}

std::string rate_text(double per_second, const std::string& unit) {
  return scaled<5>(per_second, 1000, {"", "K", "M", "G", "T"}) + unit;
}

}  // namespace sidestream::report
