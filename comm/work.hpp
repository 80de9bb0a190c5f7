// A started collective. Move-only; its buffers belong to the operation until wait() or wait_on()
// has been called.
#pragma once

#include <memory>
#include <utility>

namespace sidestream::comm {

// A raw CUDA stream (cudaStream_t) as an opaque handle; null on host ranks.
using Stream = void*;

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
    if (const auto state = std::exchange(state_, nullptr)) state->wait_on(stream);
  }
  bool done() const noexcept { return state_ == nullptr || state_->done(); }

 private:
  std::shared_ptr<WorkState> state_;
};

}  // namespace sidestream::comm
