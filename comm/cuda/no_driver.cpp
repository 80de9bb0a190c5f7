// For builds without the CUDA toolkit: no devices, so that nothing else is ever called.
#include "comm/cuda/driver.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::cuda {
namespace {

[[noreturn]] void refuse() {
  throw core::Error("this build has no CUDA: there is no device to use");
}

class NoDriver final : public Driver {
 public:
  DeviceCount device_count() override {
    return {.count = 0, .problem = "this build was made without CUDA"};
  }
  void set_device(int) override { refuse(); }
  DeviceProperties properties(int) override { refuse(); }
  DeviceMemory memory() override { refuse(); }
  Stream create_stream(Priority) override { refuse(); }
  void destroy_stream(Stream) noexcept override {}
  Event create_event() override { refuse(); }
  void destroy_event(Event) noexcept override {}
  void record(Event, Stream) override { refuse(); }
  void wait(Stream, Event) override { refuse(); }
  bool done(Event) override { refuse(); }
  void* allocate(std::size_t) override { refuse(); }
  void free(void*) noexcept override {}
  void* allocate_pinned(std::size_t) override { refuse(); }
  void free_pinned(void*) noexcept override {}
  bool pin(void*, std::size_t) override { refuse(); }
  void unpin(void*) noexcept override {}
  void copy(void*, const void*, std::size_t, Stream) override { refuse(); }
  void set_zero(void*, std::size_t, Stream) override { refuse(); }
  void start_profiler() override { refuse(); }
  void stop_profiler() override { refuse(); }
  void synchronize(Stream) override { refuse(); }
  void finish_device(int) noexcept override {}
};

}  // namespace

std::shared_ptr<Driver> make_driver() { return std::make_shared<NoDriver>(); }

}  // namespace sidestream::comm::cuda
