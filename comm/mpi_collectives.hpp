// Collectives over MPI messages among the ranks of one communicator (a job, or the ranks of a lane
// across nodes).
//
// Sums are exchanged directly: every rank receives its slice from all others, adds in rank order,
// and sends the sum back. Each byte crosses the network as often as in a ring, and the result does
// not depend on timing or size.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi_handles.hpp"
#include "comm/steps.hpp"
#include "core/base/dtype.hpp"

namespace sidestream::comm {

// What is done to a part of the buffer, given by its first element and their number; of a
// reduce-scatter to that part of every rank's slice.
struct PartWork {
  std::function<void(std::size_t begin, std::size_t count)> before = {};  // its first byte leaves
  std::function<void(std::size_t begin, std::size_t count)> after = {};   // its sum is there
};

class MpiCollectives {
 public:
  explicit MpiCollectives(MPI_Comm comm);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  // Buffers as in Communicator. The object outlives the steps. `work` is called part by part, while
  // other parts travel.
  Steps all_reduce(std::byte* data, std::size_t count, core::DType dtype, PartWork work = {});
  Steps reduce_scatter(const std::byte* input, std::byte* output, std::size_t count_per_rank,
                       core::DType dtype, PartWork work = {});
  Steps all_gather(const std::byte* input, std::byte* output, std::size_t bytes_per_rank);
  Steps broadcast(std::byte* data, std::size_t bytes, int root);
  Steps barrier();
  Steps exchange(std::string mine, std::vector<std::string>& all);

 private:
  static constexpr std::size_t kLanes =
      2;  // chunks in flight: one is exchanged while the other is added
  using Scratch = std::vector<std::byte>;

  Steps all_reduce_lane(std::size_t lane, std::byte* data, std::size_t count, core::DType dtype,
                        const PartWork& work);
  Steps reduce_scatter_lane(std::size_t lane, const std::byte* input, std::byte* output,
                            std::size_t count_per_rank, core::DType dtype, const PartWork& work);
  std::vector<const std::byte*> inputs_with_own(const Scratch& received, const std::byte* own,
                                                std::size_t slice_bytes) const;

  MPI_Comm comm_;
  int rank_;
  int size_;
  std::array<Scratch, kLanes> scratch_;
};

}  // namespace sidestream::comm
