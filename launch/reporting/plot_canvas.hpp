// A grid of characters with finer dots in it: 2 x 4 a character as braille, 1 x 1 as ASCII.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sidestream::launch::detail {

struct CanvasSize {
  int columns = 0;
  int rows = 0;
};

class PlotCanvas {
 public:
  enum class Marks { kBraille, kAscii };
  enum class Ink { kPlain, kColored };

  PlotCanvas(CanvasSize size, Marks marks);

  int dots_across() const { return size_.columns * dots_x_; }
  int dots_down() const { return size_.rows * dots_y_; }

  // Dots outside are left out. (0, 0) is the upper left one. Later series are on top.
  struct Dot {
    int x = 0;
    int y = 0;
  };
  void line(Dot from, Dot to, int series);

  // One row of characters, with colour sequences when asked for.
  std::string row_text(int row, Ink ink) const;

  // The mark or colour of a series, for a legend.
  static std::string legend_mark(int series, Marks marks, Ink ink);

 private:
  struct Cell {
    std::uint8_t dots = 0;  // braille pattern
    int series = -1;
  };

  void set(Dot dot, int series);

  CanvasSize size_;
  Marks marks_;
  int dots_x_;
  int dots_y_;
  std::vector<Cell> cells_;
};

}  // namespace sidestream::launch::detail
