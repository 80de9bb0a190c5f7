// The newest steps of this rank, phase by phase, and the longest of those before them: bounded, so
// that it can be kept all the time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "profiling/ranges/phases.hpp"

namespace sidestream::record {

struct StepTimes {
  std::int64_t number = 0;     // of this step since the start of the process: the same on all ranks
  std::int64_t step = 0;       // as the training counts them
  std::int64_t window_ns = 0;  // from its begin to its end
  std::int64_t comm_ns = 0;    // a collective was in flight and no phase below was open
  std::array<std::int64_t, ranges::kPhaseCount> phase_ns = {};  // of input and of compute

  std::int64_t other_ns() const noexcept {
    return window_ns - comm_ns - std::accumulate(phase_ns.begin(), phase_ns.end(), std::int64_t{0});
  }
};

// It is known why such a step is long.
inline bool evaluates(const StepTimes& step) noexcept {
  return step.phase_ns[static_cast<std::size_t>(ranges::Phase::kEval)] > 0;
}

class PhaseHistory {
 public:
  static constexpr std::size_t kMostSteps = 256;
  static constexpr std::size_t kMostLong = 16;

  void add(const StepTimes& step) noexcept {
    StepTimes& place = steps_[count_ % kMostSteps];
    if (count_++ >= kMostSteps) keep_if_long(place);
    place = step;
  }

  // In the order of the steps. Throws std::bad_alloc.
  std::vector<StepTimes> newest(std::size_t most = kMostSteps) const {
    const std::size_t kept = count_ < kMostSteps ? count_ : kMostSteps;
    const std::size_t wanted = most < kept ? most : kept;
    std::vector<StepTimes> steps;
    for (std::size_t i = count_ - wanted; i < count_; ++i) steps.push_back(steps_[i % kMostSteps]);
    return steps;
  }

  // The longest of the steps that are not among newest(most), in no order. Throws std::bad_alloc.
  std::vector<StepTimes> longest_before(std::size_t most = kMostSteps) const {
    std::vector<StepTimes> steps = newest();
    steps.resize(steps.size() - std::min(most, steps.size()));
    std::erase_if(steps, evaluates);
    steps.insert(steps.end(), longest_.begin(),
                 longest_.begin() + static_cast<std::ptrdiff_t>(long_count_));
    std::ranges::sort(steps, std::greater(), &StepTimes::window_ns);
    steps.resize(std::min(steps.size(), kMostLong));
    return steps;
  }

 private:
  void keep_if_long(const StepTimes& step) noexcept {
    if (evaluates(step)) return;
    if (long_count_ < kMostLong) {
      longest_[long_count_++] = step;
      return;
    }
    StepTimes& least = *std::ranges::min_element(longest_, {}, &StepTimes::window_ns);
    if (least.window_ns < step.window_ns) least = step;
  }

  std::array<StepTimes, kMostSteps> steps_;
  std::array<StepTimes, kMostLong> longest_;
  std::size_t long_count_ = 0;
  std::size_t count_ = 0;
};

}  // namespace sidestream::record
