// What the profiler or the recorder costs: the steps it saw against those beside them that it did
// not see. A run is slower when it begins, and may be slower when the machine has other work: steps
// far from any that was seen say nothing about the cost.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "profiling/statistics/middle.hpp"

namespace sidestream::launch {

// kWarmUp: the profiler runs and keeps nothing.
enum class SeenStep { kNot, kWarmUp, kYes };

// add() on one thread, the rest on any: a recording may be written while a step runs.
class ProfileCost {
 public:
  // The first three steps of a run are left out: they set things up.
  void add(std::int64_t step_ns, std::int64_t data_wait_ns, SeenStep seen);

  // Milliseconds of the steps that were not seen, next to those that were, or the newest where none
  // has been; nothing below three of them.
  std::optional<statistics::Middle> plain_steps() const;
  // The middle one of their waits for data, in milliseconds; 0 where they are too few.
  double plain_data_wait_ms() const;

  struct Share {
    double share = 0;        // (seen - not seen) / not seen, of the medians
    double uncertainty = 0;  // in the same unit
    std::size_t seen = 0;    // steps of each kind
    std::size_t beside = 0;
    bool is_sure() const { return share > uncertainty; }
  };
  // Nothing below three steps of each kind.
  std::optional<Share> share() const;

 private:
  struct PlainStep {
    double ms = 0;
    double data_wait_ms = 0;
  };
  // Nothing below three of them.
  std::vector<double> plain_values_locked(double PlainStep::*figure) const;
  std::optional<statistics::Middle> plain_steps_locked() const;

  mutable std::mutex mutex_;
  int steps_ = 0;
  std::vector<double> seen_ms_;
  std::vector<PlainStep> beside_;  // before and after those
  std::deque<PlainStep> newest_;   // not seen; before the next that is
  std::size_t to_come_ = 0;        // that are beside those seen last
};

}  // namespace sidestream::launch
