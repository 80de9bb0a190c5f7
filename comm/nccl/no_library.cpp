// For builds without NCCL.
#include "comm/nccl/api.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::nccl {

std::shared_ptr<Api> load_api() {
  throw core::ConfigError(
      "backend nccl: this build was made without NCCL (configure with the CUDA toolkit and the "
      "Python environment of launch/setup), or use --backend mpi");
}

}  // namespace sidestream::comm::nccl
