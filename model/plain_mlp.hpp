// Linear layer and MLP of LibTorch's operators that make again in backward what autograd would have
// kept. Values and gradients are those of autograd, bit for bit: the same operators on the same
// numbers.
#pragma once

#include <torch/types.h>

#include "model/operators.hpp"

namespace sidestream::model::plain {

// x weight + bias over the last dimension of x.
torch::Tensor linear(const torch::Tensor& x, const LinearWeights& weights);

// The same for an operand that is made again.
torch::Tensor linear_made_again(const Operand& x, const LinearWeights& weights);

// linear, GELU (tanh form), linear. keeps: kBeforeGelu or kInput.
torch::Tensor mlp_made_again(const Operand& x, const LinearWeights& in, const LinearWeights& out,
                             MlpKeeps keeps);

}  // namespace sidestream::model::plain
