// An update of optimizer state that lies in the host's memory: slices of it go through two buffers
// on the device. While a kernel updates one slice, the one before it goes back and the one after
// it comes.
//
// Orders the copies by marks and never waits itself; finish() does, for those who read the host's
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "core/base/copy_engine.hpp"
#include "parallel/state_slices.hpp"

namespace sidestream::parallel {

class StateStream {
 public:
  // A slice on the device: the pieces of it, and where each state's elements begin.
  struct Arrived {
    const StateSlice& slice;
    optim::PieceTable table;
    std::vector<void*> states;
  };

  // slice_elements: as cut_into_slices() has it.
  StateStream(std::shared_ptr<core::CopyEngine> copies, torch::Device device,
              std::size_t slice_elements);
  ~StateStream();  // waits for copies
  StateStream(const StateStream&) = delete;
  StateStream& operator=(const StateStream&) = delete;

  // Another layout; groups as cut_into_slices() has them. The computation waits for copies.
  void adopt(std::vector<std::vector<optim::DevicePiece>> groups);

  // states: flat tensors of the host, of one length and maybe several types, the same in every
  // call. update(arrived) queues what changes the slice, on the computation's stream.
  void update(const std::vector<torch::Tensor>& states,
              const std::function<void(const Arrived&)>& update);

  // Blocks until the host's memory has what the last update() made of it.
  void finish();

 private:
  static constexpr std::size_t kBuffers = 2;
  struct Buffer {
    torch::Tensor memory;         // bytes
    core::CopyEngine::Mark here;  // what was copied in has arrived
    core::CopyEngine::Mark free;  // what it held has left
  };

  void make_buffers(const std::vector<torch::Tensor>& states);
  std::byte* place_in(const Buffer& buffer, std::size_t state) const;
  void bring(std::size_t index, const std::vector<torch::Tensor>& states);
  void send_back(std::size_t index, const std::vector<torch::Tensor>& states);
  optim::PieceTable table_of(const StateSlice& slice) const;
  Buffer& buffer_of(std::size_t index) { return buffers_[index % kBuffers]; }

  std::shared_ptr<core::CopyEngine> copies_;
  torch::Device device_;
  std::size_t slice_elements_;
  SlicePlan plan_;
  torch::Tensor pieces_;              // bytes on the device
  std::vector<std::size_t> offsets_;  // of each state in a buffer
  std::array<Buffer, kBuffers> buffers_;
};

}  // namespace sidestream::parallel
