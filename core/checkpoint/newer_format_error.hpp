// A checkpoint written by a newer version: never skipped in silence, because an older one would be
// continued instead.
#pragma once

#include "core/base/error.hpp"

namespace sidestream::checkpoint {

class NewerFormatError : public core::CheckpointError {
 public:
  using core::CheckpointError::CheckpointError;
};

}  // namespace sidestream::checkpoint
