// Owners of streams, events and memory of a Driver, which they keep alive.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/cuda/driver.hpp"

namespace sidestream::comm::cuda {

class OwnedStream {
 public:
  OwnedStream(std::shared_ptr<Driver> driver, Priority priority)
      : driver_(std::move(driver)), stream_(driver_->create_stream(priority)) {}
  OwnedStream(OwnedStream&& other) noexcept
      : driver_(std::move(other.driver_)), stream_(std::exchange(other.stream_, nullptr)) {}
  OwnedStream& operator=(OwnedStream&&) = delete;
  OwnedStream(const OwnedStream&) = delete;
  ~OwnedStream() {
    if (stream_ != nullptr) driver_->destroy_stream(stream_);
  }

  Stream get() const noexcept { return stream_; }

 private:
  std::shared_ptr<Driver> driver_;
  Stream stream_;
};

class OwnedEvent {
 public:
  explicit OwnedEvent(std::shared_ptr<Driver> driver)
      : driver_(std::move(driver)), event_(driver_->create_event()) {}
  OwnedEvent(OwnedEvent&& other) noexcept
      : driver_(std::move(other.driver_)), event_(std::exchange(other.event_, nullptr)) {}
  OwnedEvent& operator=(OwnedEvent&&) = delete;
  OwnedEvent(const OwnedEvent&) = delete;
  ~OwnedEvent() {
    if (event_ != nullptr) driver_->destroy_event(event_);
  }

  Event get() const noexcept { return event_; }
  void record(Stream stream) const { driver_->record(event_, stream); }
  void hold_back(Stream stream) const { driver_->wait(stream, event_); }
  bool done() const { return driver_->done(event_); }

 private:
  std::shared_ptr<Driver> driver_;
  Event event_;
};

// Events for operations in flight: taken and given back all the time, made once.
class EventPool {
 public:
  explicit EventPool(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}

  // Back in the pool when the last holder lets go. The pool may be gone by then.
  static std::shared_ptr<OwnedEvent> take(const std::shared_ptr<EventPool>& pool) {
    auto event = pool->take_or_make();
    return {event.release(), [pool](OwnedEvent* returned) {
              const std::lock_guard lock(pool->mutex_);
              pool->idle_.emplace_back(returned);
            }};
  }

 private:
  std::unique_ptr<OwnedEvent> take_or_make() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<OwnedEvent>(driver_);
    auto event = std::move(idle_.back());
    idle_.pop_back();
    return event;
  }

  std::shared_ptr<Driver> driver_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<OwnedEvent>> idle_;
};

// Orders `later` after everything that `earlier` has queued so far, without blocking the host.
inline void order(const OwnedEvent& event, Stream earlier, Stream later) {
  event.record(earlier);
  event.hold_back(later);
}

}  // namespace sidestream::comm::cuda
