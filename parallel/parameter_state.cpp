#include "parallel/parameter_state.hpp"

#include <algorithm>
#include <string>

#include "core/base/error.hpp"

namespace sidestream::parallel {
namespace {

const std::string kMaster;

torch::Tensor shape_of(const Parameter& parameter, const torch::Tensor& state) {
  return torch::empty(parameter.tensor.sizes(), state.options().device(torch::kMeta));
}

// Of the piece as much as the place has: it may end before the parameter does.
void copy_piece(const StatePiece& piece, const torch::Tensor& place) {
  if (!place.defined()) return;
  const auto first = static_cast<std::int64_t>(piece.first);
  const std::int64_t count = std::min(piece.values.numel(), place.numel() - first);
  if (count > 0) place.view({-1}).narrow(0, first, count).copy_(piece.values.narrow(0, 0, count));
}

// The name of each kind of moment; the same for every parameter.
std::vector<std::string> kinds_of(const StepUpdate& update) {
  std::vector<std::string> kinds;
  for (const Moment& moment : update.moments(0)) kinds.push_back(moment.name);
  return kinds;
}

void require_slices(const ParameterSpace& parameters, const char* call) {
  if (!parameters.is_sharded())
    throw core::Error(
        std::string(call) +
        " is for ranks that keep slices of the state (shards_state()): read and write "
        "states(), then call refresh_parameters()");
}

}  // namespace

std::vector<ParameterState> states_of(const ParameterSpace& parameters, const StepUpdate& update) {
  std::vector<ParameterState> states;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    states.push_back({.name = parameters.at(i).name,
                      .parameter = parameters.weights(i),
                      .master = parameters.master(i),
                      .moments = update.moments(i)});
    if (!parameters.is_sharded()) continue;
    ParameterState& state = states.back();
    state.master = shape_of(parameters.at(i), state.master);
    for (Moment& moment : state.moments) moment.tensor = shape_of(parameters.at(i), moment.tensor);
  }
  return states;
}

void gather_states(const ParameterSpace& parameters, StepUpdate& update, const StatePlace& place) {
  require_slices(parameters, "gather_states()");
  const torch::NoGradGuard no_grad;
  const auto put = [&](const std::string& kind) {
    return [&](const StatePiece& piece) {
      copy_piece(piece, place(kind, parameters.at(piece.parameter).name));
    };
  };
  if (parameters.has_master()) {
    parameters.shards().gather(parameters.master_state().flat, put(kMaster));
  } else {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      put(kMaster)({.parameter = i, .values = parameters.weights(i).flatten()});
  }
  std::size_t next = 0;
  const std::vector<std::string> kinds = kinds_of(update);
  update.each_state([&](const FlatState& state) {
    parameters.shards().gather(state.flat, put(kinds.at(next++)));
  });
}

void load_states(ParameterSpace& parameters, StepUpdate& update, const StatePlace& source) {
  require_slices(parameters, "load_states()");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const torch::Tensor values = source(kMaster, parameters.at(i).name);
    if (values.defined()) parameters.load_weights(i, values);
  }
  std::size_t next = 0;
  const std::vector<std::string> kinds = kinds_of(update);
  update.each_state([&](const FlatState& state) {
    const std::string& kind = kinds.at(next++);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters.shards().own(i).count == 0) continue;
      const torch::Tensor values = source(kind, parameters.at(i).name);
      if (values.defined()) parameters.load_state(state, i, values);
    }
  });
}

}  // namespace sidestream::parallel
