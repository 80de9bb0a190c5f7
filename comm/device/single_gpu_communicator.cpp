#include "comm/device/single_gpu_communicator.hpp"

#include "comm/reduce.hpp"

namespace sidestream::comm {

Work SingleGpuCommunicator::copy(const void* from, void* to, std::size_t bytes,
                                 const CollectiveOptions& options) {
  if (from != to && bytes > 0) driver().copy(to, from, bytes, options.after);
  return {};
}

Work SingleGpuCommunicator::all_reduce(void* data, std::size_t count, core::DType dtype,
                                       const CollectiveOptions& options) {
  return host().all_reduce(data, count, dtype, options);  // checks, and touches nothing
}

Work SingleGpuCommunicator::reduce_scatter(const void* input, void* output,
                                           std::size_t count_per_rank, core::DType dtype,
                                           const CollectiveOptions& options) {
  require_summable(dtype);
  return copy(input, output, count_per_rank * core::size_of(dtype), options);
}

Work SingleGpuCommunicator::all_gather(const void* input, void* output, std::size_t count_per_rank,
                                       core::DType dtype, const CollectiveOptions& options) {
  return copy(input, output, count_per_rank * core::size_of(dtype), options);
}

Work SingleGpuCommunicator::broadcast(void* data, std::size_t count, core::DType dtype, int root,
                                      const CollectiveOptions& options) {
  return host().broadcast(data, count, dtype, root, options);
}

}  // namespace sidestream::comm
