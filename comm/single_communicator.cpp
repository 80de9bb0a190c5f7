#include "comm/single_communicator.hpp"

#include <cstring>

#include "comm/reduce.hpp"
#include "core/base/error.hpp"
#include "core/base/host_name.hpp"

namespace sidestream::comm {
namespace {

void copy(const void* from, void* to, std::size_t bytes) {
  if (from != to && bytes > 0) std::memmove(to, from, bytes);
}

}  // namespace

SingleCommunicator::SingleCommunicator() { topology_.hosts = {core::host_name()}; }

Work SingleCommunicator::all_reduce(void*, std::size_t, core::DType dtype,
                                    const CollectiveOptions&) {
  require_summable(dtype);
  return {};
}

Work SingleCommunicator::reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                                        core::DType dtype, const CollectiveOptions&) {
  require_summable(dtype);
  copy(input, output, count_per_rank * core::size_of(dtype));
  return {};
}

Work SingleCommunicator::all_gather(const void* input, void* output, std::size_t count_per_rank,
                                    core::DType dtype, const CollectiveOptions&) {
  copy(input, output, count_per_rank * core::size_of(dtype));
  return {};
}

Work SingleCommunicator::broadcast(void*, std::size_t, core::DType, int root,
                                   const CollectiveOptions&) {
  if (root != 0)
    throw core::Error("broadcast from rank " + std::to_string(root) + ": there is only rank 0");
  return {};
}

void SingleCommunicator::barrier(const CollectiveOptions&) {}

std::vector<std::string> SingleCommunicator::exchange(std::string_view mine,
                                                      const CollectiveOptions&) {
  return {std::string(mine)};
}

Allocation SingleCommunicator::allocate(std::size_t bytes) {
  return {.data = blocks_.emplace_back(bytes).data(), .bytes = bytes};
}

}  // namespace sidestream::comm
