// CRC-32C (Castagnoli), and the masked form that record files of TensorFlow use.
#pragma once

#include <cstdint>
#include <string_view>

namespace sidestream::launch {

std::uint32_t crc32c(std::string_view bytes);

// ((crc >> 15) | (crc << 17)) + 0xa282ead8: a checksum of bytes that hold checksums stays useful.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace sidestream::launch
