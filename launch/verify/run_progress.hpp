// What a person sees while runs go on: one line that is redrawn on a terminal, a line a run
// elsewhere.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "launch/reporting/terminal.hpp"
#include "launch/verify/plan.hpp"

namespace sidestream::launch {

class RunProgress {
 public:
  RunProgress(int runs, Terminal terminal) : runs_(runs), terminal_(terminal) {}

  void expect(int more_runs) { runs_ += more_runs; }
  void started(const PlannedRun& run);
  // Looks at the end of the run's metrics; redraws at most twice a second.
  void look(const PlannedRun& run);
  void finished(const PlannedRun& run, double step_ms);
  void kept(const PlannedRun& run, double step_ms);
  void say(const std::string& line);

 private:
  std::string time_left() const;
  void redraw(const std::string& line);

  using Clock = std::chrono::steady_clock;
  int runs_ = 0;
  Terminal terminal_;
  int done_ = 0;
  int made_ = 0;  // of them, not kept from before
  Clock::time_point began_ = Clock::now();
  Clock::time_point run_began_ = Clock::now();
  Clock::time_point drawn_ = {};
};

}  // namespace sidestream::launch
