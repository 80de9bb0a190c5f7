// Ranges on a timeline: NVTX in the domain `sidestream`, seen by Nsight Systems and by our own
// recorder.
//
//   const ScopedRange range(Phase::kForward);     // on this thread, to the end of the scope
//   const StepRange step(12);                     // ProfilerStep#12
//   AsyncRange sum(Phase::kAllReduce, {.bucket = 3, .sequence = 41, .bytes = 1 << 20});
//   sum.end();                                    // on any thread
//
// Names are registered strings, so that `nsys --capture-range=nvtx` finds them. Nobody listening: a
// few nanoseconds. Built without NVTX the same classes do nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "profiling/ranges/detail/nvtx_domain.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::ranges {

// A layer's name, registered once and kept by whoever owns the layer: transformer.h.3.mlp.
class LayerName {
 public:
  explicit LayerName(const std::string& path) : name_(detail::register_name(path.c_str())) {}

  detail::NameHandle handle() const noexcept { return name_; }

 private:
  detail::NameHandle name_;
};

// From here to the end of the scope, nested on the calling thread.
class ScopedRange {
 public:
  explicit ScopedRange(Phase phase) noexcept { detail::push(detail::label_of(phase), nullptr); }
  ScopedRange(Phase phase, const CollectivePayload& payload) noexcept {
    detail::push(detail::label_of(phase), &payload);
  }
  explicit ScopedRange(const LayerName& layer) noexcept {
    detail::push({layer.handle(), kLayerArgb, Category::kLayer}, nullptr);
  }
  ~ScopedRange() { detail::pop(); }
  ScopedRange(const ScopedRange&) = delete;
  ScopedRange& operator=(const ScopedRange&) = delete;
};

// One training step, counted from 1. Its name is registered: a listener can start and stop at a
// step.
class StepRange {
 public:
  explicit StepRange(std::int64_t step) {
    detail::push({detail::register_name(step_name(step).c_str()), kStepArgb, Category::kStep},
                 nullptr);
  }
  ~StepRange() { detail::pop(); }
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;
};

// From here to end() or destruction, on whatever thread that happens: for operations in flight.
class AsyncRange {
 public:
  AsyncRange() = default;
  AsyncRange(Phase phase, const CollectivePayload& payload) noexcept
      : id_(detail::start(detail::label_of(phase), &payload)), open_(true) {}
  AsyncRange(AsyncRange&& other) noexcept
      : id_(other.id_), open_(std::exchange(other.open_, false)) {}
  AsyncRange& operator=(AsyncRange&& other) noexcept {
    if (this != &other) {
      end();
      id_ = other.id_;
      open_ = std::exchange(other.open_, false);
    }
    return *this;
  }
  AsyncRange(const AsyncRange&) = delete;
  AsyncRange& operator=(const AsyncRange&) = delete;
  ~AsyncRange() { end(); }

  void end() noexcept {
    if (std::exchange(open_, false)) detail::stop(id_);
  }

 private:
  std::uint64_t id_ = 0;
  bool open_ = false;
};

}  // namespace sidestream::ranges
