#include "comm/device/nccl_finding.hpp"

#include <cstdlib>

#include "comm/device/socket_interfaces.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

std::string version_problem(nccl::Api& api) {
  const int runtime = api.runtime_version();
  if (runtime == api.built_version()) return {};
  return "NCCL " + nccl::version_text(runtime) + " was loaded, this build was made with NCCL " +
         nccl::version_text(api.built_version()) +
         ": another libnccl.so.2 comes first (LD_LIBRARY_PATH, LD_PRELOAD?)";
}

}  // namespace

NcclFinding find_nccl(const std::function<std::shared_ptr<nccl::Api>()>& load) {
  NcclFinding found;
  try {
    found.api = load();
    found.problem = version_problem(*found.api);
  } catch (const core::Error& error) {
    found.problem = error.what();
  }
  if (found.problem.empty()) {
    found.problem = socket_interface_problem(std::getenv("NCCL_SOCKET_IFNAME"), interface_names());
  }
  return found;
}

}  // namespace sidestream::comm
