#include <fmt/format.h>

#include "launch/doctor/checks.hpp"

namespace sidestream::launch::doctor {

// What is compiled in; whether a GPU can be used is check_gpu's.
std::optional<Finding> check_toolkit(const JobFacts& job) {
  const std::string& version = job.ranks.front().program.built_cuda;
  if (!version.empty())
    return Finding{.name = "cuda-toolkit",
                   .found = fmt::format("this build was made with CUDA {}", version)};
  const bool matters = job.ranks.front().gpu.on_bus > 0 && job.wish != comm::DeviceWish::kCpu;
  return Finding{
      .name = "cuda-toolkit",
      .level = matters ? Level::kWarning : Level::kNote,
      .found = "this build was made without CUDA: it trains on the processor",
      .expected = "a CUDA toolkit when it is built, to train on GPUs",
      .remedy =
          "install a toolkit and run launch/setup again; without GPUs there is nothing to do"};
}

}  // namespace sidestream::launch::doctor
