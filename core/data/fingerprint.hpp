// Whether two runs read the same tokens, wherever those lie.
#pragma once

#include <cstdint>
#include <string>

#include "core/data/token_stream.hpp"

namespace sidestream::data {

// Where a fingerprint looks: what it costs does not grow with the data.
inline constexpr std::uint64_t kFingerprintPlaces = 1024;
inline constexpr std::uint64_t kFingerprintTokens = 16;  // at each place

// 16 hexadecimal digits over the number of tokens and those at evenly spaced places, the first and
// the last ones always among them. How the tokens are cut into files, and of how many bytes they
// are, does not matter. Equal ones are not proof: tokens between the places may differ. Throws
// DataError for a shard that was cut short.
std::string fingerprint_of(const TokenStream& stream);

// Of a data folder. Empty: synthetic data, or no such split.
struct Fingerprints {
  std::string train = {};
  std::string validation = {};
};

}  // namespace sidestream::data
