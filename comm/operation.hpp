// One collective in flight: the steps it still has to take, and what became of it. Shared by the
// queue and the Work.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/call.hpp"
#include "comm/deadline.hpp"
#include "comm/steps.hpp"
#include "comm/work.hpp"
#include "profiling/ranges/ranges.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::comm {

class Operation {
 public:
  // `flag`: what sets the limit; static.
  Operation(const Call& call, Steps steps, std::chrono::milliseconds limit, std::string_view flag)
      : call_(call), steps_(std::move(steps)), limit_(limit), flag_(flag) {}

  const Call& call() const noexcept { return call_; }

  // The clock and the range start when an operation is first in the queue, not when it is put
  // there.
  bool started() const noexcept { return deadline_.has_value(); }
  void start() {
    deadline_.emplace(limit_);
    span_.begin_ns = record::monotonic_ns();
    // A barrier is nothing but waiting: its range is on the thread that waits.
    if (call_.kind != CallKind::kBarrier)
      range_ = ranges::AsyncRange(call_.phase(), call_.payload());
  }
  Deadline& deadline() { return *deadline_; }
  std::string_view deadline_flag() const noexcept { return flag_; }
  Advance advance() { return steps_.advance(); }

  // Since when the deadline is over and nobody has said so yet.
  const std::optional<Deadline::Clock::time_point>& over_since() const noexcept { return over_; }
  void note_over() { over_ = Deadline::Clock::now(); }

  // Half-time: peers are asked once how far they are.
  bool ask_now() { return deadline_->is_half_over() && !std::exchange(asked_, true); }

  void finish() {
    range_.end();
    steps_ = Steps();
    span_.end_ns = record::monotonic_ns();
    done_.store(true, std::memory_order_release);
  }
  // MPI may still know the buffers of steps that were cut short: they stay to the end of the
  // process.
  void abandon() noexcept { steps_.abandon(); }
  void fail(std::exception_ptr error) {
    range_.end();
    abandon();
    error_ = std::move(error);
    done_.store(true, std::memory_order_release);
  }
  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  const WorkSpan& span() const noexcept { return span_; }  // once done
  void rethrow_failure() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Call call_;
  Steps steps_;
  std::chrono::milliseconds limit_;
  std::string_view flag_;
  std::optional<Deadline> deadline_;
  bool asked_ = false;
  std::optional<Deadline::Clock::time_point> over_;
  ranges::AsyncRange range_;
  std::exception_ptr error_;
  WorkSpan span_ = {};
  std::atomic<bool> done_{false};
};

}  // namespace sidestream::comm
