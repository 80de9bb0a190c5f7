// The parameter holders that models are made of; names and shapes are those of Hugging Face's
// GPT-2. They have no forward: the operators of operators.hpp take their tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace sidestream::model {

// x @ weight + bias with weight [in, out] (the layout of GPT-2's Conv1D).
struct Linear : torch::nn::Module {
  Linear(std::int64_t in, std::int64_t out);
  torch::Tensor weight, bias;
};

struct LayerNorm : torch::nn::Module {
  explicit LayerNorm(std::int64_t width);
  torch::Tensor weight, bias;
};

struct Embedding : torch::nn::Module {
  Embedding(std::int64_t rows, std::int64_t width);
  torch::Tensor weight;
};

// c_fc [C, 4C], c_proj [4C, C].
struct Mlp : torch::nn::Module {
  explicit Mlp(std::int64_t width);
  std::shared_ptr<Linear> c_fc, c_proj;
};

// c_attn [C, 3C], c_proj [C, C].
struct Attention : torch::nn::Module {
  explicit Attention(std::int64_t width);
  std::shared_ptr<Linear> c_attn, c_proj;
};

// GPT-2's published initialisation: weights normal(0, 0.02), those of c_proj divided by
// sqrt(residual_branches), biases 0, norms 1; embedding rows from vocab_size on are 0. A pure
// function of the seed.
struct Initialisation {
  std::uint64_t seed = 0;
  std::int64_t residual_branches = 2;
  std::int64_t vocab_size = 0;
};
void initialise_parameters(torch::nn::Module& module, const Initialisation& initialisation);

}  // namespace sidestream::model
