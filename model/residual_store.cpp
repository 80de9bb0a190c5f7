#include "model/residual_store.hpp"

#include <algorithm>

namespace sidestream::model {
namespace {

using Queue = core::CopyEngine::Queue;
using torch::Tensor;

constexpr std::size_t kMostLeaving = 2;

}  // namespace

HostBlocks::~HostBlocks() {
  try {
    copies_->finish();
  } catch (const std::exception&) {  // the device has failed: what matters has been reported
  }
}

std::shared_ptr<std::byte> HostBlocks::take(std::size_t bytes) {
  Block block{.memory = {}, .bytes = bytes};
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const Block& idle) { return idle.bytes == bytes; });
    if (found != idle_.end()) {
      block = std::move(*found);
      idle_.erase(found);
    }
  }
  if (!block.memory) block.memory = copies_->allocate_host(bytes);
  return {block.memory.get(), [pool = weak_from_this(), block](std::byte*) {
            if (const auto here = pool.lock()) here->give_back(block);
          }};
}

void HostBlocks::give_back(Block block) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(block));
}

void ResidualStore::reserve(std::size_t count, std::size_t bytes) const {
  std::vector<std::shared_ptr<std::byte>> taken;
  for (std::size_t i = 0; i < count; ++i) taken.push_back(blocks_->take(bytes));
}

ResidualPass::~ResidualPass() {
  const bool is_quiet =
      leaving_.empty() && std::none_of(back_.begin(), back_.end(), [](const Back& back) {
        return back.here || (back.residual.defined() && !back.index);
      });
  if (is_quiet) return;
  try {
    copies_->finish();
  } catch (const std::exception&) {  // the device has failed: what matters has been reported
  }
}

MadeAgain ResidualPass::keep(const Tensor& residual) {
  TORCH_CHECK(residual.is_contiguous(), "only contiguous tensors are copied to the host");
  let_go_of_leaving(kMostLeaving - 1);
  Kept kept{.host = blocks_->take(residual.nbytes()),
            .sizes = residual.sizes().vec(),
            .options = residual.options(),
            .gone = {}};
  copies_->hold_back(Queue::kToHost, copies_->mark(Queue::kCompute));
  // Before the copy, so that an exception finds it here.
  leaving_.push_back({.residual = residual.detach(), .gone = {}});
  copies_->copy(Queue::kToHost, kept.host.get(), residual.const_data_ptr(), residual.nbytes());
  kept.gone = copies_->mark(Queue::kToHost);
  leaving_.back().gone = kept.gone;
  kept_.push_back(std::move(kept));
  return {[self = shared_from_this(), index = kept_.size() - 1] { return self->fetch(index); }};
}

void ResidualPass::let_go_of_leaving(std::size_t most) {
  while (leaving_.size() > most) {
    if (leaving_.front().gone) copies_->hold_back(Queue::kCompute, leaving_.front().gone);
    leaving_.pop_front();
  }
}

Tensor ResidualPass::fetch(std::size_t index) {
  let_go_of_leaving(0);
  bring(index);
  if (index > 0) bring(index - 1);
  Back& back = back_[index % back_.size()];
  wait_for(back);
  return back.residual;
}

// Into memory that the computation's allocator gives and gets back: what had it before may still be
// computing.
void ResidualPass::bring(std::size_t index) {
  Back& back = back_[index % back_.size()];
  if (back.index == index) return;
  wait_for(back);
  const Kept& kept = kept_.at(index);
  back = {};
  back.residual = torch::empty(kept.sizes, kept.options.requires_grad(false));
  copies_->hold_back(Queue::kToDevice, kept.gone);
  copies_->hold_back(Queue::kToDevice, copies_->mark(Queue::kCompute));
  copies_->copy(Queue::kToDevice, back.residual.mutable_data_ptr(), kept.host.get(),
                back.residual.nbytes());
  back.here = copies_->mark(Queue::kToDevice);
  back.index = index;
}

void ResidualPass::wait_for(Back& back) {
  if (back.here) copies_->hold_back(Queue::kCompute, back.here);
  back.here = nullptr;
}

}  // namespace sidestream::model
