// Where the steps of this rank went, from its phase ranges alone, added up while the run goes on: a
// few microseconds a step, no recording, no clock but this rank's.
//
// Of a step: io is the time inside data and h2d; gpu (the word for whatever computes) the time
// inside phases that compute (Category::kCompute: forward, backward, optimizer, zero_grad, and an
// evaluation or a replayed graph inside of it); comm the time when a collective was in flight
// and none of these phases was open, or the one that was open waited for it; cpu is the rest. The
// same words and the same arithmetic as in the report of a trace. The first step of a run is left
// out. The newest steps are kept one by one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/record/phase_history.hpp"
#include "profiling/record/range_record.hpp"

namespace sidestream::record {

// Sums over steps, of one thread.
struct PhaseTotals {
  std::int64_t steps = 0;
  std::int64_t window_ns = 0;
  std::int64_t io_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t comm_ns = 0;
  std::int64_t uncounted_steps = 0;  // with more phases or collectives than are kept for a step

  std::int64_t other_ns() const noexcept { return window_ns - io_ns - compute_ns - comm_ns; }
  void add(const StepTimes& step) noexcept;
  void add(const PhaseTotals& others) noexcept;
  void remove(const StepTimes& step) noexcept;  // that was added
};

class PhaseAccount {
 public:
  // A collective has ended, on any thread.
  void add_collective(std::int64_t start_ns, std::int64_t end_ns) noexcept;

  // Those below on the thread of the steps.
  void begin_step(std::int64_t start_ns, std::int64_t step = 0) noexcept;
  // A collective that the thread of the steps waited for, in a phase or not. It is one of those
  // that add_collective() is told of.
  void add_wait(std::int64_t start_ns, std::int64_t end_ns) noexcept;
  // A phase directly inside the step has ended; after the waits in it.
  void add_phase(ranges::Phase phase, std::int64_t start_ns, std::int64_t end_ns) noexcept;
  void end_step(std::int64_t end_ns) noexcept;

  const PhaseTotals& totals() const noexcept { return totals_; }
  const PhaseHistory& history() const noexcept { return history_; }

 private:
  // Of a step: a micro-step has three phases, and a collective a bucket.
  static constexpr std::size_t kMostPhases = 1 << 13;
  static constexpr std::size_t kMostCollectives = 1 << 14;  // a power of two

  struct Span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct SharedSpan {
    std::atomic<std::uint64_t> number{0};  // of the collective, from 1; 0: being written
    std::atomic<std::int64_t> start_ns{0};
    std::atomic<std::int64_t> end_ns{0};
  };

  void add_piece(ranges::Phase phase, Span piece) noexcept;
  std::int64_t exposed_ns(Span window, std::uint64_t last) noexcept;
  std::int64_t outside_phases_ns(Span span, std::size_t& phase) const noexcept;

  std::array<SharedSpan, kMostCollectives> collectives_;
  std::atomic<std::uint64_t> collective_count_{0};
  std::array<Span, kMostCollectives> sorted_;  // scratch
  std::array<Span, kMostPhases> phases_;       // of this step, in order
  std::size_t phase_count_ = 0;
  std::array<Span, kMostPhases> waits_;  // of this step, in order
  std::size_t wait_count_ = 0;
  std::size_t first_wait_ = 0;  // that no phase has been cut by
  std::uint64_t first_collective_ = 0;
  std::int64_t step_start_ns_ = 0;
  StepTimes step_;  // that is under way
  PhaseTotals totals_;
  PhaseHistory history_;
};

}  // namespace sidestream::record
