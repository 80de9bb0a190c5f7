// Inputs of blocks in the host's memory from their forward to their backward: what a device keeps
// of a model that is computed again block by block does not grow with its depth. (LLM.Q, 2025, does
// the same.)
//
// At most two tensors are on their way out, and at most two are back: the one that backward reads
// and the next one. A tensor's memory goes back to its allocator only when the computation is
// behind the copy that reads or writes it, so that whoever gets it next does not meet that copy.
//
//   const auto pass = store->begin();             // one forward
//   Operand input(x, pass->keep(x));              // x goes to the host; backward brings it back
//   pass->end_forward();
//   pass->begin_backward();                       // if there is work to do before x is asked for
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "core/base/copy_engine.hpp"
#include "model/operand.hpp"

namespace sidestream::model {

// Host memory that is used again: pinning costs as much as many copies. Any thread: autograd's may
// be the last holder.
class HostBlocks : public std::enable_shared_from_this<HostBlocks> {
 public:
  explicit HostBlocks(std::shared_ptr<core::CopyEngine> copies) : copies_(std::move(copies)) {}

  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;
  // What comes back may still be copied from.
  ~HostBlocks();

  // Comes back here when the last holder lets go. Throws MemoryError.
  std::shared_ptr<std::byte> take(std::size_t bytes);

 private:
  struct Block {
    std::shared_ptr<std::byte> memory;
    std::size_t bytes;
  };
  void give_back(Block block);

  std::shared_ptr<core::CopyEngine> copies_;
  std::mutex mutex_;
  std::vector<Block> idle_;
};

// Of one forward. What keep() returns holds it alive.
class ResidualPass : public std::enable_shared_from_this<ResidualPass> {
 public:
  ResidualPass(std::shared_ptr<core::CopyEngine> copies, std::shared_ptr<HostBlocks> blocks)
      : copies_(std::move(copies)), blocks_(std::move(blocks)) {}
  ~ResidualPass();  // waits for copies that the computation is not behind: after an exception
  ResidualPass(const ResidualPass&) = delete;
  ResidualPass& operator=(const ResidualPass&) = delete;

  // In the order of the forward: starts to copy a contiguous tensor, whose memory is not written
  // any more, to the host. What is returned gives a tensor of its values in backward, valid until
  // the values of a tensor kept earlier are asked for; it also starts to bring back the tensor that
  // was kept before this one.
  MadeAgain keep(const torch::Tensor& residual);

  // Nothing is kept any more: the device's memory of what was is free from here on.
  void end_forward() { let_go_of_leaving(0); }
  // Starts to bring back what was kept last.
  void begin_backward() {
    if (!kept_.empty()) bring(kept_.size() - 1);
  }

 private:
  struct Kept {
    std::shared_ptr<std::byte> host;
    std::vector<std::int64_t> sizes;
    torch::TensorOptions options;
    core::CopyEngine::Mark gone;
  };
  struct Leaving {
    torch::Tensor residual;
    core::CopyEngine::Mark gone;
  };
  struct Back {
    std::optional<std::size_t> index;
    torch::Tensor residual;
    core::CopyEngine::Mark here;  // null: the computation is behind it
  };

  torch::Tensor fetch(std::size_t index);
  void bring(std::size_t index);
  void wait_for(Back& back);
  void let_go_of_leaving(std::size_t most);

  std::shared_ptr<core::CopyEngine> copies_;
  std::shared_ptr<HostBlocks> blocks_;
  std::vector<Kept> kept_;
  std::deque<Leaving> leaving_;
  std::array<Back, 2> back_;
};

class ResidualStore {
 public:
  explicit ResidualStore(std::shared_ptr<core::CopyEngine> copies)
      : copies_(std::move(copies)), blocks_(std::make_shared<HostBlocks>(copies_)) {}

  std::shared_ptr<ResidualPass> begin() const {
    return std::make_shared<ResidualPass>(copies_, blocks_);
  }

  // Makes the memory for a forward that keeps so many tensors of so many bytes. Throws MemoryError.
  void reserve(std::size_t count, std::size_t bytes) const;

 private:
  std::shared_ptr<core::CopyEngine> copies_;
  std::shared_ptr<HostBlocks> blocks_;
};

}  // namespace sidestream::model
