#include "core/checkpoint/tensor_assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"

namespace sidestream::checkpoint {

std::vector<int> assign_tensors(std::span<const std::uint64_t> tensor_bytes, int world_size,
                                std::uint64_t first_rank_bytes) {
  if (world_size < 1)
    throw core::Error(
        fmt::format("assign_tensors: expected 1 or more ranks, found {}", world_size));
  std::vector<std::size_t> order(tensor_bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensor_bytes[a] > tensor_bytes[b]; });
  std::vector<std::uint64_t> load(static_cast<std::size_t>(world_size));
  load.front() = first_rank_bytes;
  std::vector<int> rank_of(tensor_bytes.size());
  for (const std::size_t tensor : order) {
    const auto lightest = std::min_element(load.begin(), load.end());
    *lightest += tensor_bytes[tensor];
    rank_of[tensor] = static_cast<int>(lightest - load.begin());
  }
  return rank_of;
}

std::string optimizer_file_name(int rank, int world_size) {
  return fmt::format("optimizer_{:05}_of_{:05}.safetensors", rank, world_size);
}

}  // namespace sidestream::checkpoint
