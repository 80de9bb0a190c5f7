// The communicator of a process that is alone: every sum is the input itself. Needs no MPI.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "comm/page_block.hpp"

namespace sidestream::comm {

class SingleCommunicator final : public Communicator {
 public:
  SingleCommunicator();

  const Topology& topology() const noexcept override { return topology_; }
  std::string_view backend_name() const noexcept override { return "single"; }

  Work all_reduce(void* data, std::size_t count, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                      core::DType dtype, const CollectiveOptions& options) override;
  Work all_gather(const void* input, void* output, std::size_t count_per_rank, core::DType dtype,
                  const CollectiveOptions& options) override;
  Work broadcast(void* data, std::size_t count, core::DType dtype, int root,
                 const CollectiveOptions& options) override;
  void barrier(const CollectiveOptions& options) override;
  std::vector<std::string> exchange(std::string_view mine,
                                    const CollectiveOptions& options) override;
  Allocation allocate(std::size_t bytes) override;
  void announce_failure(std::string_view) noexcept override {}

 private:
  Topology topology_;
  std::vector<PageBlock> blocks_;
};

}  // namespace sidestream::comm
