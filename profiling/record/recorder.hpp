// The embedded recorder: what NVTX tells about the ranges of this process, kept in a ring per
// thread, and added up per step for the verdict at the end of every run.
//
// Ranges are told by nvtx_injection.cpp when no tool is attached. Nothing is kept before
// keep(Keeping::kOn); the account of phases goes on always. take() hands over what came since the
// take before, cut at its own time: recordings that follow each other neither overlap nor leave a
// gap.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profiling/record/clock.hpp"
#include "profiling/record/flights.hpp"
#include "profiling/record/names.hpp"
#include "profiling/record/phase_account.hpp"
#include "profiling/record/range_record.hpp"
#include "profiling/record/recording.hpp"

namespace sidestream::record {

struct RecorderConfig {
  // Raised to a power of two; 48 bytes each, once they are used. One less is kept.
  std::size_t ranges_per_thread = 1 << 16;
  std::size_t most_threads = 256;  // ranges of further ones are dropped and counted
};

// Into rings. Paused, ranges are left out of a recording that goes on.
enum class Keeping { kOff, kPaused, kOn };

class Cut;
class ThreadLog;

class Recorder {
 public:
  explicit Recorder(const RecorderConfig& config = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Of threads that have kept no range yet: to be called before the first keep(Keeping::kOn).
  void make_room_for(std::size_t ranges_per_thread) noexcept;
  // The room in which a thread would have lost none of so many ranges.
  static std::size_t room_for(std::uint64_t ranges) noexcept;

  // A recording begins where it was off; from any thread.
  void keep(Keeping keeping) noexcept;
  bool keeps() const noexcept { return keeps_.load(std::memory_order_relaxed); }

  // What NVTX tells. No lock, no memory asked for but at a thread's first range, and at the first
  // that is kept; never throw.
  void push(NameId name, const ranges::CollectivePayload* payload) noexcept;
  void pop() noexcept;
  std::uint64_t start(NameId name, const ranges::CollectivePayload* payload) noexcept;
  void end(std::uint64_t id) noexcept;

  NameTable& names() noexcept { return names_; }
  const NameTable& names() const noexcept { return names_; }

  // From any thread, also while a collective hangs. Throws std::bad_alloc.
  Recording take();

  // On the thread of the steps, between steps.
  const PhaseTotals& totals() const noexcept { return account_.totals(); }
  const PhaseHistory& history() const noexcept { return account_.history(); }
  // The newest step that has begun; 0: none.
  std::int64_t step() const noexcept { return step_.load(std::memory_order_relaxed); }

 private:
  ThreadLog* log_of_this_thread() noexcept;
  ThreadLog* new_log() noexcept;
  void keep_range(ThreadLog* log, const RangeRecord& range) noexcept;
  void tell_account(ThreadLog& log, const RangeRecord& range) noexcept;
  void take_thread(ThreadLog& log, Recording& recording, Cut& flights);

  const std::size_t most_threads_;
  std::atomic<std::size_t> ranges_per_thread_;
  const std::uint64_t number_;  // of this recorder, for what threads remember
  NameTable names_;
  Flights flights_;
  PhaseAccount account_;
  std::atomic<bool> keeps_{false};
  std::atomic<std::int64_t> step_{0};
  std::atomic<std::uint64_t> dropped_{0};

  std::mutex mutex_;  // all below
  Keeping keeping_ = Keeping::kOff;
  std::vector<std::shared_ptr<ThreadLog>> logs_;
  ClockReading last_take_;
  std::vector<RangeRecord> flights_seen_open_;  // by the last take
  std::uint64_t dropped_before_ = 0;
};

}  // namespace sidestream::record
