#include "profiling/record/phase_account.hpp"

#include <algorithm>

namespace sidestream::record {

namespace {

PhaseTotals totals_of(const StepTimes& step) noexcept {
  PhaseTotals totals{.steps = 1, .window_ns = step.window_ns, .comm_ns = step.comm_ns};
  for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase) {
    const bool input = ranges::kPhases[phase].category == ranges::Category::kInput;
    (input ? totals.io_ns : totals.compute_ns) += step.phase_ns[phase];
  }
  return totals;
}

}  // namespace

void PhaseTotals::add(const StepTimes& step) noexcept { add(totals_of(step)); }

void PhaseTotals::remove(const StepTimes& step) noexcept {
  const PhaseTotals gone = totals_of(step);
  steps -= gone.steps;
  window_ns -= gone.window_ns;
  io_ns -= gone.io_ns;
  compute_ns -= gone.compute_ns;
  comm_ns -= gone.comm_ns;
}

void PhaseTotals::add(const PhaseTotals& others) noexcept {
  steps += others.steps;
  window_ns += others.window_ns;
  io_ns += others.io_ns;
  compute_ns += others.compute_ns;
  comm_ns += others.comm_ns;
  uncounted_steps += others.uncounted_steps;
}

void PhaseAccount::add_collective(std::int64_t start_ns, std::int64_t end_ns) noexcept {
  const std::uint64_t index = collective_count_.fetch_add(1, std::memory_order_relaxed);
  SharedSpan& span = collectives_[index % kMostCollectives];
  span.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  span.start_ns.store(start_ns, std::memory_order_relaxed);
  span.end_ns.store(end_ns, std::memory_order_relaxed);
  span.number.store(index + 1, std::memory_order_release);
}

void PhaseAccount::begin_step(std::int64_t start_ns, std::int64_t step) noexcept {
  step_start_ns_ = start_ns;
  step_ = {.number = step_.number + 1, .step = step};
  phase_count_ = wait_count_ = first_wait_ = 0;
  first_collective_ = collective_count_.load(std::memory_order_acquire);
}

void PhaseAccount::add_phase(ranges::Phase phase, std::int64_t start_ns,
                             std::int64_t end_ns) noexcept {
  const ranges::Category category = ranges::info_of(phase).category;
  if (category != ranges::Category::kInput && category != ranges::Category::kCompute) return;
  std::int64_t at = start_ns;
  for (; first_wait_ < std::min(wait_count_, kMostPhases); ++first_wait_) {
    const Span wait = waits_[first_wait_];
    if (wait.end_ns <= start_ns) continue;  // before this phase
    add_piece(phase, {at, wait.start_ns});
    at = wait.end_ns;
  }
  add_piece(phase, {at, end_ns});
}

void PhaseAccount::add_piece(ranges::Phase phase, Span piece) noexcept {
  step_.phase_ns[static_cast<std::size_t>(phase)] += piece.end_ns - piece.start_ns;
  if (phase_count_ < kMostPhases) phases_[phase_count_] = piece;
  ++phase_count_;
}

void PhaseAccount::add_wait(std::int64_t start_ns, std::int64_t end_ns) noexcept {
  if (wait_count_ < kMostPhases) waits_[wait_count_] = {start_ns, end_ns};
  ++wait_count_;
}

void PhaseAccount::end_step(std::int64_t end_ns) noexcept {
  if (step_.number == 1) return;
  const std::uint64_t last = collective_count_.load(std::memory_order_acquire);
  if (phase_count_ > kMostPhases || wait_count_ > kMostPhases ||
      last - first_collective_ > kMostCollectives) {
    ++totals_.uncounted_steps;
    return;
  }
  step_.window_ns = end_ns - step_start_ns_;
  step_.comm_ns = exposed_ns({step_start_ns_, end_ns}, last);
  totals_.add(step_);
  history_.add(step_);
}

// Length of the union of the collectives inside the window, less what phases cover.
std::int64_t PhaseAccount::exposed_ns(Span window, std::uint64_t last) noexcept {
  std::size_t count = 0;
  for (std::uint64_t i = first_collective_; i < last; ++i) {
    const SharedSpan& shared = collectives_[i % kMostCollectives];
    if (shared.number.load(std::memory_order_acquire) != i + 1) continue;  // not written yet
    const Span span{std::max(window.start_ns, shared.start_ns.load(std::memory_order_relaxed)),
                    std::min(window.end_ns, shared.end_ns.load(std::memory_order_relaxed))};
    if (span.start_ns < span.end_ns) sorted_[count++] = span;
  }
  std::sort(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
  std::int64_t exposed = 0, covered_to = window.start_ns;
  std::size_t phase = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Span fresh{std::max(sorted_[i].start_ns, covered_to), sorted_[i].end_ns};
    if (fresh.start_ns >= fresh.end_ns) continue;
    exposed += outside_phases_ns(fresh, phase);
    covered_to = fresh.end_ns;
  }
  return exposed;
}

// `phase`: the first one that can matter for this span and all later ones.
std::int64_t PhaseAccount::outside_phases_ns(Span span, std::size_t& phase) const noexcept {
  while (phase < phase_count_ && phases_[phase].end_ns <= span.start_ns) ++phase;
  std::int64_t inside = 0;
  for (std::size_t i = phase; i < phase_count_ && phases_[i].start_ns < span.end_ns; ++i)
    inside +=
        std::min(span.end_ns, phases_[i].end_ns) - std::max(span.start_ns, phases_[i].start_ns);
  return span.end_ns - span.start_ns - inside;
}

}  // namespace sidestream::record
