// A checkpoint that cannot be read at the moment: it may be whole, so nobody may take an older one
// in its place.
#pragma once

#include "core/base/error.hpp"

namespace sidestream::checkpoint {

class UnreadableError : public core::CheckpointError {
 public:
  using core::CheckpointError::CheckpointError;
};

}  // namespace sidestream::checkpoint
