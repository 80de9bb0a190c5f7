#include "parallel/tensor_place.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

std::string text_of(const torch::Device& place) {
  return place.is_cpu() ? "the host" : place.str();
}

}  // namespace

torch::Device place_of(const comm::Communicator& communicator) {
  const std::optional<int> index = communicator.device();
  if (!index) return torch::kCPU;
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(*index)};
}

void require_place(const std::vector<Parameter>& tensors, const torch::Device& place) {
  for (const auto& [name, tensor] : tensors) {
    if (tensor.device() == place || (tensor.is_cpu() && place.is_cpu())) continue;
    throw core::ConfigError(fmt::format(
        "'{}' is on {}, but the communicator works on {}: expected every parameter and buffer "
        "there. {} (CommunicatorConfig::device = DeviceWish::kCuda and choose_device(), before "
        "run_program(), have it work on a GPU.)",
        name, text_of(tensor.device()), text_of(place),
        place.is_cpu() ? "Leave the module on the CPU, or make the communicator with a GPU."
                       : "Move the whole module there, module.to(), before DataParallel is made."));
  }
}

}  // namespace sidestream::parallel
