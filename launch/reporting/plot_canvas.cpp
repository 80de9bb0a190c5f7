#include "launch/reporting/plot_canvas.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace sidestream::launch::detail {
namespace {

constexpr std::array<const char*, 4> kColors = {"\033[36m", "\033[33m", "\033[35m", "\033[32m"};
constexpr std::array<const char*, 4> kAsciiMarks = {"*", "o", "+", "x"};
constexpr const char* kReset = "\033[0m";
// Bits of U+2800 + pattern by [y][x].
constexpr std::array<std::array<std::uint8_t, 2>, 4> kBrailleBits = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

std::string braille(std::uint8_t dots) {
  if (dots == 0) return " ";
  const unsigned code = 0x2800u + dots;
  return {static_cast<char>(0xE0u | code >> 12), static_cast<char>(0x80u | (code >> 6 & 0x3Fu)),
          static_cast<char>(0x80u | (code & 0x3Fu))};
}

std::size_t style_of(int series) { return static_cast<std::size_t>(series) % kColors.size(); }

}  // namespace

PlotCanvas::PlotCanvas(CanvasSize size, Marks marks)
    : size_(size),
      marks_(marks),
      dots_x_(marks == Marks::kBraille ? 2 : 1),
      dots_y_(marks == Marks::kBraille ? 4 : 1),
      cells_(static_cast<std::size_t>(size.columns) * static_cast<std::size_t>(size.rows)) {}

// Bresenham.
void PlotCanvas::line(Dot from, Dot to, int series) {
  const int dx = std::abs(to.x - from.x), dy = -std::abs(to.y - from.y);
  const int step_x = from.x < to.x ? 1 : -1, step_y = from.y < to.y ? 1 : -1;
  int error = dx + dy;
  set(from, series);
  while (from.x != to.x || from.y != to.y) {
    const int doubled = 2 * error;
    if (doubled >= dy) {
      error += dy;
      from.x += step_x;
    }
    if (doubled <= dx) {
      error += dx;
      from.y += step_y;
    }
    set(from, series);
  }
}

void PlotCanvas::set(Dot dot, int series) {
  if (dot.x < 0 || dot.y < 0 || dot.x >= dots_across() || dot.y >= dots_down()) return;
  const int column = dot.x / dots_x_, row = dot.y / dots_y_;
  Cell& cell = cells_[static_cast<std::size_t>(row * size_.columns + column)];
  cell.series = series;
  cell.dots |= kBrailleBits[static_cast<std::size_t>(dot.y % dots_y_)]
                           [static_cast<std::size_t>(dot.x % dots_x_)];
}

std::string PlotCanvas::row_text(int row, Ink ink) const {
  std::string text;
  for (int column = 0; column < size_.columns; ++column) {
    const Cell& cell = cells_[static_cast<std::size_t>(row * size_.columns + column)];
    if (cell.series < 0) {
      text += ' ';
      continue;
    }
    const std::string mark =
        marks_ == Marks::kBraille ? braille(cell.dots) : kAsciiMarks[style_of(cell.series)];
    text += ink == Ink::kColored ? kColors[style_of(cell.series)] + mark + kReset : mark;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string PlotCanvas::legend_mark(int series, Marks marks, Ink ink) {
  const std::string mark = marks == Marks::kBraille ? "━━" : kAsciiMarks[style_of(series)];
  return ink == Ink::kColored ? kColors[style_of(series)] + mark + kReset : mark;
}

}  // namespace sidestream::launch::detail
