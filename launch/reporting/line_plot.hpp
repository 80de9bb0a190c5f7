// Curves in a terminal: braille dots where the locale can show them, ASCII elsewhere.
#pragma once

#include <string>
#include <vector>

namespace sidestream::launch {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // ordered by x; points that are not finite are left out
};

struct PlotOptions {
  int width_columns = 80;  // of the whole plot with its labels
  int height_rows = 16;    // of the area of the curves
  bool utf8 = true;
  bool color = false;
  std::string x_label = "step";
  std::string y_label = "loss";
};

// Axes with labels at round values, curves as connected lines, a legend for more than one series.
// Without colour several series are drawn with different ASCII marks, because dots could not be
// told apart. Empty when there is no point.
std::string line_plot(const std::vector<PlotSeries>& series, const PlotOptions& options);

}  // namespace sidestream::launch
