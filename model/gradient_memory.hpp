// Where operators write the gradients of weights, so that nobody has to copy them there, and whom
// they tell that one is there.
#pragma once

#include <functional>

#include <torch/types.h>

namespace sidestream::model {

struct GradientMemory {
  // Memory of the weight's shape and dtype, not initialised, that its gradient may be written into
  // and handed to autograd as; undefined: memory of the operator's own. Asked in a forward that is
  // going to be differentiated. Empty: there is none for anybody.
  std::function<torch::Tensor(const torch::Tensor& weight)> lend = {};

  // May be called in backward when all of a gradient is in memory that was lent for it, while the
  // operator has other gradients still to compute. True: it is taken over, may be travelling
  // already, and is not handed to autograd; false, or an empty function: it is, as any other.
  std::function<bool(const torch::Tensor& weight)> take_over = {};
};

}  // namespace sidestream::model
