// Device buffers summed by the host communicator: copied to the host, added there, copied back.
// What `--backend mpi` means on GPUs: the comparison for NCCL, and its oracle.
//
// A collective blocks the calling thread while the host works; MPI itself never sees device memory.
#pragma once

#include "comm/device/device_communicator.hpp"

namespace sidestream::comm {

class StagedCommunicator final : public DeviceCommunicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, DeviceContext context);

  std::string_view backend_name() const noexcept override { return "mpi+staging"; }

  Work all_reduce(void* data, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                      core::DType dtype, const CollectiveOptions& options) override;
  Work all_gather(const void* input, void* output, std::size_t count_per_rank, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                 const CollectiveOptions& options) override;

 private:
  // Host memory that is at least so large; all ranks ask for the same.
  std::byte* staging(std::size_t bytes);
  std::byte* fetch(const void* device_data, std::size_t bytes, const CollectiveOptions& options);
  Work put_back(void* device_data, const std::byte* from, std::size_t bytes);

  cuda::OwnedStream stream_;
  std::shared_ptr<cuda::EventPool> events_;
  Allocation staging_;
  std::vector<std::shared_ptr<void>> pins_;  // of all that staging_ has been: the host keeps it
};

}  // namespace sidestream::comm
