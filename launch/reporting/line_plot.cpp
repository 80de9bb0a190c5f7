#include "launch/reporting/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "launch/reporting/plot_canvas.hpp"

namespace sidestream::launch {
namespace {

using detail::PlotCanvas;

struct Extent {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  void include(double value) {
    min = std::min(min, value);
    max = std::max(max, value);
  }
  // A flat curve still needs a height.
  void open() {
    if (max > min) return;
    const double half = min == 0 ? 1 : std::abs(min) * 0.05;
    min -= half;
    max += half;
  }
  // The dot of a value when `dots` dots cover the extent.
  int dot_of(double value, int dots) const {
    return static_cast<int>(std::lround((value - min) / (max - min) * (dots - 1)));
  }
};

bool finite(const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// The round step (1, 2 or 5 times a power of ten) that gives at most `count` parts.
double round_step(const Extent& extent, int count) {
  const double raw = (extent.max - extent.min) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= raw) return power * factor;
  }
  return power * 10;
}

// Labels at round values, as (dot, text) with dots counted from the smallest value.
struct Tick {
  int dot = 0;
  std::string text;
};

std::vector<Tick> ticks_of(const Extent& extent, int dots, int count) {
  constexpr double kLeast = 2;  // one number gives no scale
  double step = round_step(extent, count);
  const auto fit = [&] {
    return std::floor(extent.max / step * (1 + 1e-12)) - std::ceil(extent.min / step) + 1;
  };
  for (int more = 2 * count; fit() < kLeast && more <= dots; more *= 2)
    step = round_step(extent, more);
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step))));
  std::vector<Tick> ticks;
  for (double k = std::ceil(extent.min / step); k * step <= extent.max * (1 + 1e-12); k += 1) {
    ticks.push_back(
        {extent.dot_of(k * step, dots), fmt::format("{:.{}f}", k * step + 0.0, digits)});
  }
  return ticks;
}

void draw_series(PlotCanvas& canvas, const PlotSeries& series, int index, const Extent& x,
                 const Extent& y) {
  const auto dot_of = [&](const PlotPoint& point) {
    return PlotCanvas::Dot{x.dot_of(point.x, canvas.dots_across()),
                           canvas.dots_down() - 1 - y.dot_of(point.y, canvas.dots_down())};
  };
  const PlotPoint* previous = nullptr;
  for (const PlotPoint& point : series.points) {
    if (!finite(point)) continue;
    canvas.line(dot_of(previous == nullptr ? point : *previous), dot_of(point), index);
    previous = &point;
  }
}

std::string x_axis(const std::vector<Tick>& ticks, int columns, int dots_per_column,
                   const std::string& label) {
  std::string text(static_cast<std::size_t>(columns), ' ');
  std::size_t free_from = 0;
  for (const Tick& tick : ticks) {
    const int center = tick.dot / dots_per_column;
    const int start = std::clamp(center - static_cast<int>(tick.text.size()) / 2, 0,
                                 std::max(0, columns - static_cast<int>(tick.text.size())));
    const auto at = static_cast<std::size_t>(start);
    if (at < free_from || at + tick.text.size() > text.size()) continue;
    text.replace(at, tick.text.size(), tick.text);
    free_from = at + tick.text.size() + 2;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "  " + label;
}

std::string legend(const std::vector<PlotSeries>& series, PlotCanvas::Marks marks,
                   PlotCanvas::Ink ink) {
  std::string text;
  for (std::size_t i = 0; i < series.size(); ++i) {
    text += (i == 0 ? "" : "   ") + PlotCanvas::legend_mark(static_cast<int>(i), marks, ink) + " " +
            series[i].name;
  }
  return text;
}

}  // namespace

std::string line_plot(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  constexpr int kRowsPerTick = 4, kColumnsPerTick = 12, kNarrowest = 10;
  Extent x, y;
  for (const PlotSeries& one : series) {
    for (const PlotPoint& point : one.points) {
      if (!finite(point)) continue;
      x.include(point.x);
      y.include(point.y);
    }
  }
  if (!std::isfinite(x.min)) return "";
  x.open();
  y.open();

  const auto ink = options.color ? PlotCanvas::Ink::kColored : PlotCanvas::Ink::kPlain;
  const bool braille = options.utf8 && (options.color || series.size() == 1);
  const auto marks = braille ? PlotCanvas::Marks::kBraille : PlotCanvas::Marks::kAscii;
  const int rows = std::max(4, options.height_rows);
  const std::vector<Tick> y_ticks = ticks_of(y, rows, std::max(2, rows / kRowsPerTick));
  std::size_t label_width = 0;
  for (const Tick& tick : y_ticks) label_width = std::max(label_width, tick.text.size());
  const int columns =
      std::max(kNarrowest,
               options.width_columns - static_cast<int>(label_width + 4 + options.x_label.size()));
  PlotCanvas canvas({columns, rows}, marks);
  for (std::size_t i = 0; i < series.size(); ++i)
    draw_series(canvas, series[i], static_cast<int>(i), x, y);

  const std::string blank(label_width, ' ');
  std::string text = options.y_label;
  if (series.size() > 1) text += "    " + legend(series, marks, ink);
  text += "\n";
  for (int row = 0; row < rows; ++row) {
    const auto tick = std::find_if(y_ticks.begin(), y_ticks.end(),
                                   [&](const Tick& t) { return rows - 1 - t.dot == row; });
    const std::string label =
        tick == y_ticks.end() ? blank : fmt::format("{:>{}}", tick->text, label_width);
    text += label + (options.utf8 ? (tick == y_ticks.end() ? " │" : " ┤") : " |") +
            canvas.row_text(row, ink) + "\n";
  }
  std::string axis;
  for (int i = 0; i < columns; ++i) axis += options.utf8 ? "─" : "-";
  text += blank + (options.utf8 ? " └" : " +") + axis + "\n";
  const int dots_per_column = canvas.dots_across() / columns;
  text += blank + "  " +
          x_axis(ticks_of(x, canvas.dots_across(), std::max(2, columns / kColumnsPerTick)), columns,
                 dots_per_column, options.x_label);
  return text + "\n";
}

}  // namespace sidestream::launch
