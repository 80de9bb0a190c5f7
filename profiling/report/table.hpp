// A table for the terminal, for CSV and for JSON. The unit of a number is the end of its column's
// name: `_ns`, `_bytes`, `_per_s`, `_percent`, `share`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sidestream::report {

// monostate: not known.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;
using Row = std::vector<Cell>;

struct Table {
  std::string title;
  std::vector<std::string> header;
  std::vector<Row> rows;
};

// Empty for nothing, and for a number below 0 that stands for nothing.
template <typename T>
Cell or_empty(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}
inline Cell or_empty(const std::optional<int>& value) {
  return value ? Cell(std::int64_t{*value}) : Cell();
}
inline Cell known(std::int64_t value) { return value < 0 ? Cell() : Cell(value); }

struct TextStyle {
  std::size_t width_columns = 100;
  bool color = false;
};

// First column to the left, the others to the right. Lines are no longer than the width as long as
// every column keeps 14 characters: the widest are cut, with "..." in the middle, because
// kernels differ at both ends.
std::string text_of(const Table& table, const TextStyle& style);

// A table with more columns than fit into the width as several, one below the other: each begins
// with the first column, and the title of all but the first says "continued".
std::vector<Table> parts_of(const Table& table, std::size_t width_columns);

// RFC 4180, one header line; numbers as they are.
std::string csv_of(const Table& table);
std::string csv_of_row(const Row& cells);

// For people: numbers with the unit that fits, at most `rows` rows, no column without an entry
// (empty, or an amount that is 0 in every row), and in the title what was left out. Of a stack the
// innermost frame that is not in a library.
Table readable(const Table& table, std::size_t rows);

// Four digits, and all of those before the point.
std::string number_text(double value);

// "12.35 ms": four digits with the unit that fits.
std::string duration_text(double nanoseconds);

// A name of so many columns at most, its middle replaced by "...". At least 6.
std::string cut(const std::string& whole, std::size_t width);
std::string percent_text(double share);
std::string bytes_text(double bytes);
// "1.234 TFLOP/s"
std::string rate_text(double per_second, const std::string& unit = "/s");

}  // namespace sidestream::report
