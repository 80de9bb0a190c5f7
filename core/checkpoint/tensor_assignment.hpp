// Which rank writes which tensor: whole tensors, balanced by bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sidestream::checkpoint {

// Rank of each tensor: the largest first, each to the rank with the fewest bytes so far, ties to
// the lowest rank. Rank 0 has `first_rank_bytes` to write already. The same on every rank. Throws
// Error for a world size below 1.
std::vector<int> assign_tensors(std::span<const std::uint64_t> tensor_bytes, int world_size,
                                std::uint64_t first_rank_bytes = 0);

// "optimizer_00001_of_00004.safetensors"
std::string optimizer_file_name(int rank, int world_size);

}  // namespace sidestream::checkpoint
