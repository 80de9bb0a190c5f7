// Where operators write the gradients of weights, so that nobody has to copy them there.
#pragma once

#include <functional>

#include <torch/torch.h>

namespace sidestream::model {

// Memory of the weight's shape and dtype, not initialised, that its gradient may be written into
// and handed to autograd as; undefined: memory of the operator's own. Asked in a forward that is
// going to be differentiated.
using GradientMemory = std::function<torch::Tensor(const torch::Tensor& weight)>;

}  // namespace sidestream::model
