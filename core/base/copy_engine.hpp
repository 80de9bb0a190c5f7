// Copies between a device's memory and memory of the host that run beside what the device computes.
//
// Three queues: the computation (the stream on which the calling thread queues its work), and one
// of copies in each direction. Work of one queue is done in order; work of two only where marks
// order it. No call but finish() blocks the host. Who gives memory back, or reuses it, has seen to
// it that a queue which comes to that point is behind every copy that touches it.
//
//   engine.hold_back(kToHost, engine.mark(kCompute));   // what is copied has been computed
//   engine.copy(kToHost, host, device, bytes);
//   const Mark gone = engine.mark(kToHost);
//   ...
//   engine.hold_back(kCompute, gone);                   // from here on the device memory is free
//
// Knows no tensor and no CUDA: policies are tested with an engine that copies as late as it may.
#pragma once

#include <cstddef>
#include <memory>

namespace sidestream::core {

class CopyEngine {
 public:
  enum class Queue { kCompute, kToDevice, kToHost };
  // What a queue has been given up to a point.
  using Mark = std::shared_ptr<const void>;

  virtual ~CopyEngine() = default;
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  // Host memory that a copy engine reads and writes itself, at a 64-byte boundary, with any
  // contents. The last holder must not let go while copies touch it. Throws MemoryError.
  virtual std::shared_ptr<std::byte> allocate_host(std::size_t bytes) = 0;

  // queue: one of copies. Throws Error.
  virtual void copy(Queue queue, void* to, const void* from, std::size_t bytes) = 0;

  virtual Mark mark(Queue queue) = 0;
  // What the queue is given from now on comes after the mark.
  virtual void hold_back(Queue queue, const Mark& mark) = 0;

  // Blocks the host until all copies are done. Throws Error when the device has failed.
  virtual void finish() = 0;

 protected:
  CopyEngine() = default;
};

}  // namespace sidestream::core
