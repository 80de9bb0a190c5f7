// How the places of a batch are cut for the gradient of an embedding (embedding_rows.hpp).
#pragma once

#include <cstdint>

namespace sidestream::model::device {

// Places, sorted by token, that a block adds up.
constexpr int kPlacesOfATile = 32;

constexpr std::int64_t token_tiles(std::int64_t count) {
  return (count + kPlacesOfATile - 1) / kPlacesOfATile;
}

}  // namespace sidestream::model::device
