// What training keeps for each parameter, for those who save and restore it.
//
// Where each rank keeps its slices only, nobody holds a whole state: then it is described by
// tensors without memory, and gathered or loaded through functions that name a place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "parallel/optimizer.hpp"
#include "parallel/parameter_space.hpp"
#include "parallel/step_update.hpp"

namespace sidestream::parallel {

// A parameter and what the optimizer keeps for it: tensors of the parameter's shape, views of flat
// buffers. Master weights are fp32, moments as --optimizer-state-dtype has them. Sharded, master
// and moments are meta tensors: they have a shape and no memory.
struct ParameterState {
  std::string name;         // as named_parameters() says
  torch::Tensor parameter;  // in the parameter dtype
  torch::Tensor master;     // fp32 weights; the parameter itself when it is fp32
  std::vector<Moment> moments;
};

// kind: empty for the master weights, or the name of a moment. A contiguous tensor of the state's
// type on the host for the parameter's first elements, or undefined.
using StatePlace =
    std::function<torch::Tensor(const std::string& kind, const std::string& parameter)>;

// In registration order.
std::vector<ParameterState> states_of(const ParameterSpace& parameters, const StepUpdate& update);

// Of sharded state. Collective, blocks: copies master weights and moments to the places that this
// rank names. `place` is asked on every rank, more than once for a state, and must not throw. A
// rank that names no place takes no memory beyond kGatheredBytes. Throws CollectiveError,
// PeerError.
void gather_states(const ParameterSpace& parameters, StepUpdate& update, const StatePlace& place);

// Of sharded state, on this rank alone: takes its slices, and all weights, from the values that
// `source` has; undefined values leave what is there. What `source` throws passes through.
void load_states(ParameterSpace& parameters, StepUpdate& update, const StatePlace& source);

}  // namespace sidestream::parallel
