// Sizes of buffers as nccl-tests takes them with -b and -e: "4k", "25m", "1g", in a list with
// commas.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::launch {

// In the order of the text; k, m and g (or K, M and G) are 2^10, 2^20 and 2^30 bytes, no letter is
// bytes. At most 1 TiB each. Throws ConfigError that names the word and what it should be.
std::vector<std::size_t> parse_byte_sizes(std::string_view text);

// "64k", "25m"; "1000" where no letter fits.
std::string byte_size_text(std::size_t bytes);
std::string byte_sizes_text(const std::vector<std::size_t>& sizes);

}  // namespace sidestream::launch
