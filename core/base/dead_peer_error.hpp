// A peer that cannot say itself what happened.
#pragma once

#include "core/base/error.hpp"

namespace sidestream::core {

// A rank whose process is gone: unlike after a PeerError nobody else will tell people about it.
class DeadPeerError : public PeerError {
 public:
  using PeerError::PeerError;
};

}  // namespace sidestream::core
