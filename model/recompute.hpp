// A part of a model whose inner tensors are not kept between forward and backward: it runs once
// without gradients, and again in backward (Chen et al. 2016, "Training Deep Nets with Sublinear
// Memory Cost").
//
// Gradients of parameters are accumulated in the inner backward: each arrives once, where it is
// ready, so that hooks on parameters see what they would have seen. Any device, any operators.
#pragma once

#include <functional>
#include <vector>

#include <torch/types.h>

#include "model/operand.hpp"

namespace sidestream::model {

enum class Pass {
  kFirst,  // in forward
  kAgain,  // in backward
};

// Whether a computation asks the device's default generator for numbers. The state of one cannot be
// read while a CUDA graph is captured.
enum class Draws { kNone, kSome };

// Must do the same in both passes. What it refers to has to live until backward.
using Computation =
    std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& inputs, Pass pass)>;

// The outputs of `computation`. Kept are the inputs, or what makes them again, and with draws the
// state of the device's default generator, which the second pass starts from: it draws the same
// numbers and leaves the generator as it found it. Where nothing is going to be differentiated, or
// no input needs a gradient, it simply runs. Backward goes through it once.
std::vector<torch::Tensor> recompute_in_backward(const Computation& computation,
                                                 const std::vector<Operand>& inputs,
                                                 Draws draws = Draws::kSome);

}  // namespace sidestream::model
