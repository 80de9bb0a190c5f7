#include "launch/reporting/progress_reporter.hpp"

#include "core/base/printable.hpp"
#include "launch/reporting/progress_text.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{100};
constexpr std::string_view kClearLine = "\r\033[K";

}  // namespace

ProgressReporter::~ProgressReporter() { finish(); }

void ProgressReporter::update(const StepMetrics& metrics, Importance importance) {
  const TimePoint now = std::chrono::steady_clock::now();
  const auto interval = options_.terminal.interactive ? kRedrawInterval : options_.line_interval;
  const bool due =
      !last_shown_ || now - *last_shown_ >= interval || importance == Importance::kAlways;
  latest_ = metrics;
  if (!due) return;
  last_shown_ = now;
  if (options_.terminal.interactive) return draw();
  print_above(progress_line(metrics, options_.total_steps));
}

void ProgressReporter::info(std::string_view text) { print_above(core::printable_lines(text)); }

void ProgressReporter::warn(std::string_view text) {
  const bool color = options_.terminal.color;
  print_above(std::string(color ? "\033[33m" : "") + "warning: " + (color ? "\033[0m" : "") +
              core::printable_lines(text));
}

void ProgressReporter::finish() {
  if (bar_visible_) {
    draw();
    screen_.write("\n");
  }
  bar_visible_ = false;
  latest_.reset();
  last_shown_.reset();
}

// One write, so that output of other processes on the same terminal cannot come between.
void ProgressReporter::print_above(const std::string& text) {
  std::string out = bar_visible_ ? std::string(kClearLine) : std::string();
  out += text + "\n";
  screen_.write(out);
  if (bar_visible_) draw();
}

void ProgressReporter::draw() {
  const BarStyle style{.width_columns = options_.terminal.current_width_columns(),
                       .color = options_.terminal.color,
                       .utf8 = options_.terminal.utf8};
  const std::string bar = progress_bar(*latest_, options_.total_steps, style);
  screen_.write(std::string(kClearLine) + bar);
  bar_visible_ = true;
}

}  // namespace sidestream::launch
