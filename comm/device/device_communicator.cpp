#include "comm/device/device_communicator.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

constexpr char kBlockInUse = '1', kBlockUnused = '0';

}  // namespace

DeviceCommunicator::DeviceCommunicator(std::unique_ptr<Communicator> host, DeviceContext context)
    : host_(std::move(host)),
      context_(std::move(context)),
      set_up_stream_(context_.driver, cuda::Priority::kNormal) {}

std::shared_ptr<void> DeviceCommunicator::allocate_block(std::size_t bytes) {
  const auto driver = context_.driver;
  return {driver->allocate(bytes), [driver](void* memory) { driver->free(memory); }};
}

std::int64_t DeviceCommunicator::device_memory_taken() const {
  return static_cast<std::int64_t>(context_.free_bytes_at_start) -
         static_cast<std::int64_t>(driver().memory().free_bytes);
}

// Each rank lets go of a pointer in its own time, but what the backend knows of memory has to be
// the same on all of them when there is more.
void DeviceCommunicator::end_unused_blocks() {
  if (lent_.empty()) return;
  std::string mine;
  for (const auto& block : lent_) mine += block.use_count() == 1 ? kBlockUnused : kBlockInUse;
  const std::vector<std::string> by_rank = exchange(mine, {.purpose = "blocks in use"});
  for (std::size_t i = lent_.size(); i-- > 0;) {
    const auto is_unused = [i](const std::string& used) { return used.at(i) == kBlockUnused; };
    if (!std::ranges::all_of(by_rank, is_unused)) continue;
    block_ends(lent_[i].get());
    lent_.erase(lent_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::shared_ptr<std::byte> DeviceCommunicator::make_block(std::size_t bytes) {
  end_unused_blocks();
  std::string problem = "ok";
  const std::size_t block_bytes = std::max<std::size_t>(bytes, 1);
  std::shared_ptr<void> block;
  try {
    block = allocate_block(block_bytes);
  } catch (const core::Error& error) {
    problem = error.what();
  }
  for (const std::string& peer : exchange(problem, {})) {
    if (peer != "ok") throw core::MemoryError("allocate on one of the ranks: " + peer);
  }
  driver().set_zero(block.get(), bytes, set_up_stream_.get());
  driver().synchronize(set_up_stream_.get());
  block_allocated(block.get(), block_bytes);
  return {block, static_cast<std::byte*>(block.get())};
}

}  // namespace sidestream::comm
