// What a rank knows of a peer that has failed.
#pragma once

#include <exception>
#include <string>

#include "core/base/dead_peer_error.hpp"

namespace sidestream::comm {

struct PeerFailure {
  std::string text;
  bool is_gone = false;  // its process has ended: it will not say anything itself
};

// For a rank that cannot go on because of it. Who catches it waits for a peer that can still speak,
// and for no other.
inline std::exception_ptr error_of(const PeerFailure& failure, const std::string& text) {
  return failure.is_gone ? std::make_exception_ptr(core::DeadPeerError(text))
                         : std::make_exception_ptr(core::PeerError(text));
}

}  // namespace sidestream::comm
