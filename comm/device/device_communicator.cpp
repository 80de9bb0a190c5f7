#include "comm/device/device_communicator.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace sidestream::comm {

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

std::shared_ptr<std::byte> DeviceCommunicator::add_block(std::size_t bytes) {
  std::string problem = "ok";
  const std::size_t block_bytes = std::max<std::size_t>(bytes, 1);
  try {
    blocks_.push_back(allocate_block(block_bytes));
  } catch (const core::Error& error) {
    problem = error.what();
  }
  for (const std::string& peer : exchange(problem, {})) {
    if (peer != "ok") throw core::MemoryError("allocate on one of the ranks: " + peer);
  }
  const std::shared_ptr<void>& block = blocks_.back();
  void* data = block.get();
  driver().set_zero(data, bytes, set_up_stream_.get());
  driver().synchronize(set_up_stream_.get());
  block_allocated(data, block_bytes);
  return {block, static_cast<std::byte*>(data)};
}

}  // namespace sidestream::comm
