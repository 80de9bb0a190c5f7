#include "comm/cuda/stream_copies.hpp"

#include <utility>

#include "comm/cuda/handles.hpp"
#include "core/base/error.hpp"
#include "core/base/host_memory.hpp"

namespace sidestream::comm::cuda {
namespace {

class StreamCopies final : public core::CopyEngine {
 public:
  StreamCopies(std::shared_ptr<Driver> driver, std::function<Stream()> current_stream,
               std::string flag)
      : driver_(std::move(driver)),
        current_stream_(std::move(current_stream)),
        flag_(std::move(flag)),
        to_device_(driver_, Priority::kNormal),
        to_host_(driver_, Priority::kNormal),
        events_(std::make_shared<EventPool>(driver_)) {}

  // Pages come to lie on the NUMA node of the thread that asks.
  std::shared_ptr<std::byte> allocate_host(std::size_t bytes) override {
    void* memory = nullptr;
    try {
      memory = driver_->allocate_pinned(bytes);
    } catch (const core::MemoryError&) {
      throw core::MemoryError(flag_ + " needs " + std::to_string(bytes >> 20) +
                              " MiB more of pinned host memory than the system gives (" +
                              core::read_host_memory().text() +
                              "): leave it out, run fewer ranks on this host, or raise the "
                              "container's limit of memory");
    }
    return {static_cast<std::byte*>(memory),
            [driver = driver_](std::byte* block) { driver->free_pinned(block); }};
  }

  void copy(Queue queue, void* to, const void* from, std::size_t bytes) override {
    driver_->copy(to, from, bytes, stream_of(queue));
  }

  Mark mark(Queue queue) override {
    auto event = EventPool::take(events_);
    event->record(stream_of(queue));
    return event;
  }

  void hold_back(Queue queue, const Mark& mark) override {
    std::static_pointer_cast<const OwnedEvent>(mark)->hold_back(stream_of(queue));
  }

  void finish() override {
    driver_->synchronize(to_device_.get());
    driver_->synchronize(to_host_.get());
  }

 private:
  Stream stream_of(Queue queue) const {
    switch (queue) {
      case Queue::kCompute:
        return current_stream_();
      case Queue::kToDevice:
        return to_device_.get();
      case Queue::kToHost:
        return to_host_.get();
    }
    throw core::Error("no such queue of copies");
  }

  std::shared_ptr<Driver> driver_;
  std::function<Stream()> current_stream_;
  std::string flag_;
  OwnedStream to_device_;
  OwnedStream to_host_;
  std::shared_ptr<EventPool> events_;
};

}  // namespace

std::shared_ptr<core::CopyEngine> make_stream_copies(std::shared_ptr<Driver> driver,
                                                     std::function<Stream()> current_stream,
                                                     std::string flag) {
  return std::make_shared<StreamCopies>(std::move(driver), std::move(current_stream),
                                        std::move(flag));
}

}  // namespace sidestream::comm::cuda
