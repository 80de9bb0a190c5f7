// The part of the CUDA runtime that Sidestream uses, as a table that a test can replace: what needs
// a GPU is then a thin layer, and everything around it runs and is tested anywhere.
//
// Calls act on the calling thread's device (set_device). Those that return void throw core::Error
// with CUDA's own text, MemoryError where memory is short. Streams are never null: the default one
// is that of device_stream().
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/work.hpp"

namespace sidestream::comm::cuda {

using Event = void*;  // cudaEvent_t

// How many devices this process can use; if none, why.
struct DeviceCount {
  int count = 0;
  std::string problem = {};   // "the driver is too old ...": for people
  bool expected = false;      // none, though this machine has a driver for them
  bool none_visible = false;  // and the driver works: it shows none to this process
};

struct DeviceProperties {
  std::string name;     // "NVIDIA H200"
  std::string uuid;     // the same for every process that sees the device
  std::string pci_bus;  // "0000:3B:00.0", by which NVML finds it
  std::string version;  // "driver 13.0, runtime 13.0"
};

struct DeviceMemory {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

enum class Priority { kNormal, kHigh };

class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual DeviceCount device_count() = 0;  // never throws
  virtual void set_device(int index) = 0;
  virtual DeviceProperties properties(int index) = 0;
  virtual DeviceMemory memory() = 0;

  virtual Stream create_stream(Priority priority) = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;

  // Events carry no times. record marks what the stream has queued so far; a stream that waits for
  // the event goes on when that is done. Neither blocks the host.
  virtual Event create_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  virtual bool done(Event event) = 0;  // never blocks; throws what the device's work ran into

  // Device memory, and host memory that a copy engine can read.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) noexcept = 0;
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) noexcept = 0;
  // Host memory of another owner, which outlives it. False: it stays pageable, and copies block.
  virtual bool pin(void* memory, std::size_t bytes) = 0;
  virtual void unpin(void* memory) noexcept = 0;

  // Either side may be host memory; pinned, or the copy blocks.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  virtual void set_zero(void* memory, std::size_t bytes, Stream stream) = 0;

  // What a profiler that was told to wait for it records: from one to the other.
  virtual void start_profiler() = 0;
  virtual void stop_profiler() = 0;

  // The calls that block the host: not for use inside a step.
  virtual void synchronize(Stream stream) = 0;
  // All that device `index` has queued, whatever the calling thread's device is. What ruins the
  // device is told by the next call that throws.
  virtual void finish_device(int index) noexcept = 0;

 protected:
  Driver() = default;
};

// The CUDA runtime that this build was linked with; without one, a driver that has no devices.
std::shared_ptr<Driver> make_driver();

}  // namespace sidestream::comm::cuda
