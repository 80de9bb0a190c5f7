// Flat storage of the weights, in registration order, every parameter at a 64-byte boundary.
//
// Owns one buffer in the parameter dtype, whose views the module's parameters become, and one of
// fp32 master weights beside it when that dtype is another. The order never changes, so tensors
// that a user holds stay valid; only gradients move when the buckets are rebuilt.
//
// Sharded (state_shards.hpp), the weights are laid out like the buckets instead, so that they are
// gathered where they lie: the module's parameters move with the buckets, inside of one buffer.
// Master weights and other state are the own slices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "core/base/dtype.hpp"
#include "parallel/parameter_list.hpp"
#include "parallel/state_memory.hpp"
#include "parallel/state_shards.hpp"

namespace sidestream::parallel {

// A flat buffer with the layout of the space, and its views by parameter.
struct FlatState {
  torch::Tensor flat;
  std::vector<torch::Tensor> views;  // of the parameter's shape; sharded: flat, the own range
};
using VisitState = std::function<void(FlatState&)>;

class ParameterSpace {
 public:
  // Copies the values; each parameter's former storage is released as it goes. Into shared memory
  // the first rank copies its own: they are there for the others after meet().
  ParameterSpace(std::vector<Parameter> parameters, core::DType dtype, StateMemory memory = {});
  // Sharded from the start: no rank ever has whole master weights. The values are rank 0's already.
  ParameterSpace(std::vector<Parameter> parameters, core::DType dtype, StateMemory memory,
                 StateShards shards);
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
  // In fp32: the weights themselves when they are fp32. Sharded: the own range.
  const torch::Tensor& master(std::size_t index) const { return masters().views.at(index); }
  const torch::Tensor& flat_master() const { return masters().flat; }
  const torch::Tensor& flat_weights() const { return weights_.flat; }
  torch::Device device() const { return parameters_.front().tensor.device(); }

  // The module's parameters are still views of the weights. Throws Error that names one that has
  // been given other memory or another type since: updates would not reach it any more.
  void require_in_place() const;

  // Rounds the master weights into the weights; nothing to do when they are the same, or sharded.
  void refresh_weights();

  // Zeros, where state lies, in the layout of the master weights whatever the type.
  FlatState make_state(core::DType dtype);
  // Null: state lies where the weights do. Else in host memory, but for weights that are their own
  // master weights.
  const std::shared_ptr<core::CopyEngine>& state_copies() const { return memory_.copies(); }

  // One copy for all ranks: each updates its part, and meets the others before and after.
  bool is_shared() const noexcept { return memory_.is_shared(); }
  Part part() const { return memory_.part(); }
  std::int64_t meet() const { return memory_.meet(); }  // nanoseconds

  // Each rank keeps its slices of the state.
  bool is_sharded() const noexcept { return memory_.is_sharded(); }
  const StateShards& shards() const { return *shards_; }  // of sharded state
  // Collective: weights and state move to where these shards have them. each_state(visit) brings
  // the states that others keep. scratch: memory of any type, on the device of the weights, that
  // they may stay in meanwhile; where it is too small they are there twice. Throws CollectiveError,
  // PeerError.
  void move(StateShards shards, const std::function<void(const VisitState&)>& each_state,
            const torch::Tensor& scratch);
  // Whole values of a parameter's first elements, on the host, into the weights and this rank's
  // slice of a state.
  void load_weights(std::size_t index, const torch::Tensor& values);
  void load_state(const FlatState& state, std::size_t index, const torch::Tensor& values) const;
  const FlatState& master_state() const { return masters(); }

 private:
  const FlatState& masters() const { return has_master() || shards_ ? masters_ : weights_; }
  // The beginning of a flat buffer in the weights' type, with the layout of the shards.
  FlatState laid_out(const torch::Tensor& memory) const;
  // Values and the module's parameters move into `next`; former storage is released as it goes.
  void take_place(FlatState next);
  // fp32 weights are their own masters: the own ranges of them.
  void masters_are_weights();
  enum class Holds { kWeights, kState };
  FlatState make_flat(core::DType dtype, core::DType layout, Holds holds);
  torch::Tensor make_slices(const StateShards& shards, torch::ScalarType type) const;

  std::vector<Parameter> parameters_;
  core::DType dtype_;
  StateMemory memory_;
  FlatState weights_;
  FlatState masters_;                    // empty when the weights are fp32 and not sharded
  std::unique_ptr<StateShards> shards_;  // null: not sharded
  torch::Tensor gathered_;               // sharded: what weights_ lies in, whatever the order
};

}  // namespace sidestream::parallel
