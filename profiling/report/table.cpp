#include "profiling/report/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/printable.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::report {
namespace {

constexpr std::size_t kGap = 2;
// Wider than any number with its unit: what is wider is text, and may be cut.
constexpr std::size_t kWidestNumber = 14;

bool continues(char one) { return (static_cast<unsigned char>(one) & 0xC0u) == 0x80u; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char one) { return !continues(one); }));
}

}  // namespace

std::string cut(const std::string& whole, std::size_t width) {
  const std::string text = core::printable(whole);
  if (width_of(text) <= width || text.size() <= width) return text;
  const std::size_t tail = (width - 3) / 3;
  std::size_t head = width - 3 - tail, rest = text.size() - tail;
  while (head > 0 && continues(text[head])) --head;
  while (rest < text.size() && continues(text[rest])) ++rest;
  return text.substr(0, head) + "..." + text.substr(rest);
}

namespace {

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

std::vector<std::size_t> natural_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(width_of(name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], width_of(plain_text(row[i])));
  }
  return widths;
}

std::vector<std::size_t> widths_of(const Table& table, std::size_t limit) {
  std::vector<std::size_t> widths = natural_widths(table);
  std::size_t whole = kGap * (widths.size() - std::min<std::size_t>(1, widths.size()));
  for (const std::size_t width : widths) whole += width;
  while (whole > limit) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kWidestNumber) break;
    --*widest;
    --whole;
  }
  return widths;
}

std::string line_of(const Row& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = i < cells.size() ? plain_text(cells[i]) : "";
    if (i > 0) line += std::string(kGap, ' ');
    line += padded(cut(cell, widths[i]), widths[i], i == 0 ? Side::kLeft : Side::kRight);
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
  return number_text(value) + " " + units[unit];
}

std::optional<double> number_in(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  return std::nullopt;
}

// The innermost frame that is not in a library: "gpt2.cpp: sidestream::model::Gpt2::hidden".
std::string own_frame(const std::string& stack) {
  for (std::size_t start = 0; start < stack.size();) {
    const std::size_t end = std::min(stack.find(';', start), stack.size());
    const std::string frame = stack.substr(start, end - start);
    if (frame.substr(0, frame.find(':')).find(".so") == std::string::npos) return frame;
    start = end + 1;
  }
  return stack.substr(0, stack.find(';'));
}

bool has_unit(const std::string& column) {
  return column == "bytes" || column == "flops" || column.ends_with("_ns") ||
         column.ends_with("_bytes") || column.ends_with("_per_s") || column.ends_with("_percent");
}

Cell with_unit(const std::string& column, const Cell& cell) {
  constexpr std::size_t kWidestText = 48;
  if (const auto* text = std::get_if<std::string>(&cell))
    return cut(column == "stack" ? own_frame(*text) : *text, kWidestText);
  const std::optional<double> value = number_in(cell);
  if (!value) return cell;
  if (column.ends_with("_ns")) return duration_text(*value);
  if (column == "bytes" || column.ends_with("_bytes")) return bytes_text(*value);
  if (column == "bytes_per_s") return rate_text(*value, "B/s");
  if (column == "flops_per_s") return rate_text(*value, "FLOP/s");
  if (column == "flops") return rate_text(*value, "FLOP");
  if (column.ends_with("share")) return percent_text(*value);
  if (std::holds_alternative<double>(cell)) return number_text(*value);
  return cell;
}

// Nothing in it: empty, or an amount that is 0 everywhere, such as times on a device of host ranks.
bool says_nothing(const Table& table, std::size_t column) {
  if (column == 0) return false;
  const bool amount = has_unit(table.header[column]);
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const Row& row) {
    if (column >= row.size() || plain_text(row[column]).empty()) return true;
    const std::optional<double> value = number_in(row[column]);
    return amount && value && *value == 0;
  });
}

// Cells carry their units.
std::string without_unit(const std::string& column) {
  for (const std::string_view unit : {"_ns", "_bytes", "_per_s"}) {
    if (column.ends_with(unit) && !column.ends_with("gb_per_s"))
      return column.substr(0, column.size() - unit.size()) + (unit == "_per_s" ? "/s" : "");
  }
  return column;
}

}  // namespace

std::string text_of(const Table& table, const TextStyle& style) {
  const std::vector<std::size_t> widths = widths_of(table, style.width_columns);
  const std::string title = wrapped(table.title, style.width_columns, 2);
  std::string text = style.color ? "\033[1m" + title + "\033[0m" : title;
  if (table.header.empty()) return text;
  std::string header = line_of({table.header.begin(), table.header.end()}, widths);
  header.pop_back();
  text += style.color ? "\033[2m" + header + "\033[0m\n" : header + "\n";
  for (const auto& row : table.rows) text += line_of(row, widths);
  return text;
}

namespace {

// The first column, and those from `from` up to `to`.
Table columns_of(const Table& table, std::size_t from, std::size_t to) {
  const auto taken = [&](const auto& cells) {
    auto kept = cells;
    kept.assign(cells.begin(), cells.begin() + 1);
    for (std::size_t i = from; i < std::min(to, cells.size()); ++i) kept.push_back(cells[i]);
    return kept;
  };
  Table part{.title = from == 1 ? table.title : table.title + ", continued",
             .header = taken(table.header),
             .rows = {}};
  for (const Row& row : table.rows) part.rows.push_back(row.empty() ? row : taken(row));
  return part;
}

}  // namespace

std::vector<Table> parts_of(const Table& table, std::size_t width_columns) {
  constexpr std::size_t kWidestFirst = 40;  // of what is cut it is the name
  const std::vector<std::size_t> widths = natural_widths(table);
  std::vector<Table> parts;
  for (std::size_t from = 1; from < widths.size();) {
    std::size_t whole = std::min(widths.front(), kWidestFirst), to = from;
    while (to < widths.size() && (to == from || whole + kGap + widths[to] <= width_columns))
      whole += kGap + widths[to++];
    parts.push_back(columns_of(table, from, to));
    from = to;
  }
  return parts.empty() ? std::vector<Table>{table} : parts;
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
  Table text{.title = table.title, .header = {}, .rows = {}};
  if (table.rows.empty()) {
    text.title += ": nothing recorded";
    return text;
  }
  const std::size_t shown = std::min(rows, table.rows.size());
  text.rows.resize(shown);
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    if (says_nothing(table, column)) continue;
    text.header.push_back(without_unit(table.header[column]));
    for (std::size_t i = 0; i < shown; ++i) {
      const Row& row = table.rows[i];
      const Cell cell = column < row.size() ? row[column] : Cell();
      text.rows[i].push_back(column == 0 ? cell : with_unit(table.header[column], cell));
    }
  }
  std::vector<std::string> remarks;
  if (shown < table.rows.size())
    remarks.push_back(fmt::format("the first {} of {} rows", shown, table.rows.size()));
  if (text.header.size() < table.header.size())
    remarks.push_back(fmt::format("columns without an entry left out: {}",
                                  table.header.size() - text.header.size()));
  if (!remarks.empty()) text.title += fmt::format(" ({})", fmt::join(remarks, "; "));
  return text;
}

std::string number_text(double value) {
  constexpr double kFourDigits = 9999.5;  // from here on they would be written with an exponent
  return std::abs(value) < kFourDigits ? fmt::format("{:.4g}", value)
                                       : fmt::format("{:.0f}", value);
}

std::string duration_text(double nanoseconds) {
  return scaled<4>(nanoseconds, 1000, {"ns", "us", "ms", "s"});
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string bytes_text(double bytes) {
  return scaled<5>(bytes, 1000, {"B", "KB", "MB", "GB", "TB"});
}

std::string rate_text(double per_second, const std::string& unit) {
  return scaled<6>(per_second, 1000, {"", "K", "M", "G", "T", "P"}) + unit;
}

}  // namespace sidestream::report
