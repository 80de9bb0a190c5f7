// What rank 0 shows while it trains: a progress bar on a terminal, a log line every few seconds
// elsewhere.
//
//   ProgressReporter progress({.total_steps = 200});
//   progress.update(metrics, Importance::kNormal);   // after every logged step
//   progress.warn("shared memory is small");         // never tears the bar
//   progress.finish();                               // leaves the last state and an empty line
//   start
// One thread at a time. A screen that is gone (closed terminal, full disk) ends the output, never
// the training; one that nobody reads at the moment (Ctrl-S) misses lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/screen.hpp"
#include "launch/reporting/step_metrics.hpp"
#include "launch/reporting/terminal.hpp"

namespace sidestream::launch {

enum class Importance {
  kNormal,  // may be skipped when the last line is younger than line_interval
  kAlways,  // the first and the last step, evaluations
};

struct ProgressOptions {
  std::int64_t total_steps = 0;
  Terminal terminal = detect_terminal(1);
  std::chrono::milliseconds line_interval{
      3000};  // where there is no terminal; 0: every update is a line
};

class ProgressReporter {
 public:
  explicit ProgressReporter(ProgressOptions options)
      : options_(options), screen_(options_.terminal.fd) {}
  ~ProgressReporter();  // as finish()
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;

  // Redraws the bar at most ten times a second, or prints the line. The first update always shows.
  void update(const StepMetrics& metrics, Importance importance = Importance::kNormal);

  void info(std::string_view text);
  void warn(std::string_view text);

  // Ends the bar with its last state. Safe to call twice; update() after it starts a new bar.
  void finish();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void print_above(const std::string& text);
  void draw();

  ProgressOptions options_;
  core::Screen screen_;
  std::optional<StepMetrics> latest_;  // what the bar shows, drawn or about to be
  bool bar_visible_ = false;
  std::optional<TimePoint> last_shown_;
};

}  // namespace sidestream::launch
