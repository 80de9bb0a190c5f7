// The parameters of a module that training changes: in registration order, tied ones once under
// their first name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/base/dtype.hpp"

namespace sidestream::parallel {

struct Parameter {
  std::string name;
  torch::Tensor tensor;  // shared with the module

  std::size_t elements() const { return static_cast<std::size_t>(tensor.numel()); }
  bool decays() const { return tensor.dim() >= 2; }  // weight decay: matrices only
};

// Those that require a gradient. Throws ConfigError when there is none, and for one that is not a
// dense fp32 tensor (or one of `dtype`) on the host or a GPU, all on the same.
std::vector<Parameter> trainable_parameters(const torch::nn::Module& module, core::DType dtype);

// The places of these names, each of which stands there once. Throws ConfigError when they are not
// the names of all parameters.
std::vector<std::size_t> indices_of(const std::vector<Parameter>& parameters,
                                    const std::vector<std::string>& names);

// Where the module's parameters with a gradient are; the host when it has none.
torch::Device device_of(const torch::nn::Module& module);

// What else a replica holds: parameters without gradient and buffers, each tensor once; and
// one kind of these. Throw ConfigError naming one that is not dense.
std::vector<Parameter> constant_tensors(const torch::nn::Module& module);
std::vector<Parameter> frozen_parameters(const torch::nn::Module& module);
std::vector<Parameter> buffer_tensors(const torch::nn::Module& module);

}  // namespace sidestream::parallel
