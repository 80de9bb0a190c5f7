// One GPU alone: every sum is the input itself. Needs neither MPI nor NCCL.
#pragma once

#include "comm/device/device_communicator.hpp"

namespace sidestream::comm {

class SingleGpuCommunicator final : public DeviceCommunicator {
 public:
  SingleGpuCommunicator(std::unique_ptr<Communicator> host, DeviceContext context)
      : DeviceCommunicator(std::move(host), std::move(context)) {}

  std::string_view backend_name() const noexcept override { return "single"; }

  CollectiveCapture* collective_capture() noexcept override { return &capture_; }
  bool captures_collectives() const noexcept override { return true; }

  // Copies are queued on options.after.
  Work all_reduce(void* data, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                      core::DType dtype, const CollectiveOptions& options) override;
  Work all_gather(const void* input, void* output, std::size_t count_per_rank, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                 const CollectiveOptions& options) override;

 private:
  Work copy(const void* from, void* to, std::size_t bytes, const CollectiveOptions& options);

  PlainCapture capture_;
};

}  // namespace sidestream::comm
