// What a rank knows of a peer that has failed.
#pragma once

#include <string>

namespace sidestream::comm {

struct PeerFailure {
  std::string text;
  bool is_gone = false;  // its process has ended: it will not say anything itself
};

}  // namespace sidestream::comm
