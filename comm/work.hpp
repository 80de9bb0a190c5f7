// A started collective. Move-only; its buffers belong to the operation until wait() or wait_on()
// has been called.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace sidestream::comm {

// A raw CUDA stream (cudaStream_t) as an opaque handle; null on host ranks.
using Stream = void*;

// That of a device for a handle in which null is the default stream, as LibTorch's is: under the
// name that CUDA has for it beside null (cudaStreamLegacy of driver_types.h).
inline Stream device_stream(void* handle) noexcept {
  constexpr std::uintptr_t kLegacyDefault = 1;
  return handle != nullptr ? handle : reinterpret_cast<Stream>(kLegacyDefault);
}

// CLOCK_MONOTONIC.
struct WorkSpan {
  std::int64_t begin_ns = 0;  // when the operation was the first in its rank's queue
  std::int64_t end_ns = 0;
};

// What a backend implements for one operation in flight.
class WorkState {
 public:
  virtual ~WorkState() = default;

  // Blocks the calling thread until the operation is done. Throws CollectiveError or PeerError.
  virtual void wait() = 0;

  // Orders `stream` after the operation without blocking the host; host backends block the calling
  // thread instead.
  virtual void wait_on(Stream stream) = 0;

  // True once the operation is done or has failed; never blocks, never throws.
  virtual bool done() const noexcept = 0;

  // Of an operation that is done; nothing where the host does not see when it ran.
  virtual std::optional<WorkSpan> span() const noexcept { return std::nullopt; }
};

class [[nodiscard]] Work {
 public:
  Work() = default;  // nothing in flight: wait() returns at once
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}
  Work(Work&&) noexcept = default;
  Work& operator=(Work&&) noexcept = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Blocks until done, once; a second call does nothing. Throws CollectiveError or PeerError.
  void wait() {
    if (const auto state = std::exchange(state_, nullptr)) state->wait();
  }
  // See WorkState::wait_on. The state lives on until the operation is done.
  void wait_on(Stream stream) {
    const auto state = std::exchange(state_, nullptr);
    if (state == nullptr) return;
    state->wait_on(stream);
    if (state->done()) span_ = state->span();
  }
  // Of what has been waited for with wait_on; see WorkState::span.
  const std::optional<WorkSpan>& span() const noexcept { return span_; }
  bool done() const noexcept { return state_ == nullptr || state_->done(); }

 private:
  std::shared_ptr<WorkState> state_;
  std::optional<WorkSpan> span_ = {};
};

}  // namespace sidestream::comm
