// A table of texts, for the terminal and for CSV.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sidestream::report {

struct Table {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

struct TextStyle {
  std::size_t width_columns = 100;
  bool color = false;
};

// First column to the left, the others to the right. Lines are never longer than the width: the
// first column is cut where it has to be, with "..." in its middle, because kernels differ at both
// ends.
std::string text_of(const Table& table, const TextStyle& style);

// RFC 4180, one header line; numbers as they are.
std::string csv_of(const Table& table);
std::string csv_of_row(const std::vector<std::string>& cells);

// "12.345 ms": four digits with the unit that fits.
std::string duration_text(double nanoseconds);
std::string percent_text(double share);
std::string bytes_text(double bytes);

}  // namespace sidestream::report
