// What communicators over GPU memory share: the host side, and memory on the device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/cuda/handles.hpp"

namespace sidestream::comm {

struct DeviceContext {
  std::shared_ptr<cuda::Driver> driver;
  int index = 0;  // of the device in this process; current in the calling thread
  std::size_t free_bytes_at_start = 0;  // when the rank took the device
};

class DeviceCommunicator : public Communicator {
 public:
  const Topology& topology() const noexcept override { return host_->topology(); }
  std::optional<int> device() const noexcept override { return context_.index; }
  std::int64_t progress_cpu_ns() const noexcept override { return host_->progress_cpu_ns(); }
  void barrier(const CollectiveOptions& options) override { host_->barrier(options); }
  void leave() override { host_->leave(); }
  std::vector<std::string> exchange(std::string_view mine,
                                    const CollectiveOptions& options) override {
    return host_->exchange(mine, options);
  }
  void announce_failure(std::string_view message) noexcept override {
    host_->announce_failure(message);
  }

  void note_activity(ranges::Phase phase, std::int64_t step) noexcept override {
    host_->note_activity(phase, step);
  }
  bool is_in_flight() const noexcept override { return host_->is_in_flight(); }
  bool claim_message() noexcept override { return host_->claim_message(); }
  std::optional<PeerFailure> failure_of_peer() const override { return host_->failure_of_peer(); }
  std::int64_t device_memory_taken() const override;

  // On the device, zero-filled.
  Allocation allocate(std::size_t bytes) override {
    return {.data = kept_.emplace_back(make_block(bytes)).get(), .bytes = bytes};
  }

 protected:
  DeviceCommunicator(std::unique_ptr<Communicator> host, DeviceContext context);

  Communicator& host() const noexcept { return *host_; }
  // Ends it in good order before an exception passes that all ranks throw together.
  void end_host() noexcept { host_.reset(); }
  cuda::Driver& driver() const noexcept { return *context_.driver; }
  // As Communicator::allocate_registered().
  std::shared_ptr<std::byte> lend_block(std::size_t bytes) {
    return lent_.emplace_back(make_block(bytes));
  }
  const DeviceContext& context() const noexcept { return context_; }

  // Null is not returned: throws MemoryError.
  virtual std::shared_ptr<void> allocate_block(std::size_t bytes);

  // All ranks have their block.
  virtual void block_allocated(void* memory, std::size_t bytes) {
    static_cast<void>(memory);
    static_cast<void>(bytes);
  }
  // No rank has a pointer to their block any more; it ends next.
  virtual void block_ends(void* memory) { static_cast<void>(memory); }

 private:
  std::shared_ptr<std::byte> make_block(std::size_t bytes);
  void end_unused_blocks();

  std::unique_ptr<Communicator> host_;
  DeviceContext context_;
  cuda::OwnedStream set_up_stream_;
  std::vector<std::shared_ptr<std::byte>> kept_;  // until the end
  std::vector<std::shared_ptr<std::byte>> lent_;  // the same on all ranks
};

}  // namespace sidestream::comm
