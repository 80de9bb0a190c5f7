// Whose gradient is not finite: for the message about a step that was not taken.
#pragma once

#include <string>

#include <torch/torch.h>

namespace sidestream::launch {

// Name of the first parameter; empty if all gradients are finite. Gradients are sums over all ranks
// by now: the same name everywhere. Waits for the device.
std::string first_bad_gradient(const torch::nn::Module& model);

}  // namespace sidestream::launch
