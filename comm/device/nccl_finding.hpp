// The NCCL that this process would use, and whether it can.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/nccl/api.hpp"

namespace sidestream::comm {

struct NcclFinding {
  std::shared_ptr<nccl::Api> api;  // null: it cannot be loaded
  std::string problem;             // why it cannot be used; empty: nothing is known against it
};

// Loads it, compares its version with the one of this build, and looks whether NCCL_SOCKET_IFNAME
// names an interface. Never throws a core::Error.
NcclFinding find_nccl(const std::function<std::shared_ptr<nccl::Api>()>& load);

}  // namespace sidestream::comm
