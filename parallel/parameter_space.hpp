// Flat storage of the weights, in registration order, every parameter at a 64-byte boundary.
//
// Owns one buffer in the parameter dtype, whose views the module's parameters become, and one of
// fp32 master weights beside it when that dtype is another. The order never changes, so tensors
// that a user holds stay valid; only gradients move when the buckets are rebuilt.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "core/base/dtype.hpp"
#include "parallel/parameter_list.hpp"
#include "parallel/state_memory.hpp"

namespace sidestream::parallel {

// A flat buffer with the layout of the space, and its views by parameter.
struct FlatState {
  torch::Tensor flat;
  std::vector<torch::Tensor> views;  // of the parameter's shape
};

class ParameterSpace {
 public:
  // Copies the values; each parameter's former storage is released as it goes. Into shared memory
  // the first rank copies its own: they are there for the others after meet().
  ParameterSpace(std::vector<Parameter> parameters, core::DType dtype, StateMemory memory = {});
  ParameterSpace(const ParameterSpace&) = delete;
  ParameterSpace& operator=(const ParameterSpace&) = delete;

  core::DType dtype() const noexcept { return dtype_; }
  bool has_master() const noexcept { return dtype_ != core::DType::kFloat32; }
  std::size_t size() const noexcept { return parameters_.size(); }

  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  const Parameter& at(std::size_t index) const { return parameters_.at(index); }
  std::vector<std::string> names() const;
  std::vector<std::size_t> elements() const;

  // The module's tensor without its autograd history, in the parameter dtype.
  const torch::Tensor& weights(std::size_t index) const { return weights_.views.at(index); }
  // In fp32: the weights themselves when they are fp32.
  const torch::Tensor& master(std::size_t index) const { return masters().views.at(index); }
  const torch::Tensor& flat_master() const { return masters().flat; }
  const torch::Tensor& flat_weights() const { return weights_.flat; }
  torch::Device device() const { return parameters_.front().tensor.device(); }

  // Rounds the master weights into the weights; nothing to do when they are the same.
  void refresh_weights();

  // Zeros, where the weights lie, in the layout of the master weights whatever the type.
  FlatState make_state(core::DType dtype);

  // One copy for all ranks: each updates its part, and meets the others before and after.
  bool is_shared() const noexcept { return memory_.is_shared(); }
  Part part() const { return memory_.part(); }
  std::int64_t meet() const { return memory_.meet(); }  // nanoseconds

 private:
  const FlatState& masters() const { return has_master() ? masters_ : weights_; }
  FlatState make_flat(core::DType dtype, core::DType layout);

  std::vector<Parameter> parameters_;
  core::DType dtype_;
  StateMemory memory_;
  FlatState weights_;
  FlatState masters_;  // empty when the weights are fp32
};

}  // namespace sidestream::parallel
