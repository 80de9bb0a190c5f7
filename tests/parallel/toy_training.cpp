#include "tests/parallel/toy_training.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "tests/parallel/thread_communicator.hpp"

namespace sidestream::test {
namespace {

constexpr std::int64_t kFeatures = 7;
constexpr std::int64_t kOutputs = 3;

void fill(torch::nn::Module& module, int rank) {
  const torch::NoGradGuard no_grad;
  double phase = 0.3 + rank;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor wave =
        torch::arange(item.value().numel(), torch::kFloat32).mul(0.7).add(phase).sin();
    item.value().copy_(wave.mul(0.4).view(item.value().sizes()));
    phase += 1.1;
  }
}

double mean_over_ranks(comm::Communicator& communicator, double value) {
  std::string mine(sizeof value, '\0');
  std::memcpy(mine.data(), &value, sizeof value);
  double sum = 0;
  for (const std::string& other : communicator.exchange(mine)) {
    std::memcpy(&value, other.data(), sizeof value);
    sum += value;
  }
  return sum / communicator.size();
}

// Sharded state is brought together first.
std::vector<parallel::ParameterState> whole_states(parallel::DataParallel& replicas) {
  std::vector<parallel::ParameterState> states = replicas.states();
  if (!replicas.shards_state()) return states;
  std::map<std::string, torch::Tensor> places;
  const auto place_for = [&](const std::string& name, torch::Tensor& tensor) {
    tensor = torch::zeros(tensor.sizes());
    places[name] = tensor;
  };
  for (parallel::ParameterState& state : states) {
    place_for("." + state.name, state.master);
    for (parallel::Moment& moment : state.moments)
      place_for(moment.name + "." + state.name, moment.tensor);
  }
  replicas.gather_states([&](const std::string& kind, const std::string& parameter) {
    return places.at(kind + "." + parameter);
  });
  return states;
}

enum class Parts { kMasters, kAll };

std::vector<float> concatenated(const std::vector<parallel::ParameterState>& states, Parts parts) {
  std::vector<float> values;
  const auto add = [&](const torch::Tensor& tensor) {
    const torch::Tensor flat = tensor.to(torch::kFloat32).contiguous().view({-1});
    const float* data = flat.const_data_ptr<float>();
    values.insert(values.end(), data, data + flat.numel());
  };
  for (const parallel::ParameterState& state : states) {
    add(state.master);
    if (parts == Parts::kMasters) continue;
    for (const parallel::Moment& moment : state.moments) add(moment.tensor);
  }
  return values;
}

}  // namespace

ToyNet::ToyNet(int rank, std::int64_t hidden)
    : first(kFeatures, hidden),
      norm(torch::nn::LayerNormOptions({hidden})),
      second(hidden, kOutputs),
      branch(kFeatures, kOutputs) {
  register_module("first", first);
  register_module("norm", norm);
  register_module("second", second);
  register_module("branch", branch);
  fill(*this, rank);
}

torch::Tensor ToyNet::forward(const torch::Tensor& inputs_bf) {
  const torch::Tensor main_bo = second(norm(torch::tanh(first(inputs_bf))));
  return use_branch ? main_bo + branch(inputs_bf) : main_bo;
}

ToyBatch make_toy_batch(std::int64_t first_sample, std::int64_t count) {
  const torch::Tensor sample_b1 =
      torch::arange(first_sample, first_sample + count, torch::kFloat32).unsqueeze(1);
  const torch::Tensor feature_f = torch::arange(1, kFeatures + 1, torch::kFloat32);
  const torch::Tensor output_o = torch::arange(1, kOutputs + 1, torch::kFloat32);
  return {.inputs_bf = (sample_b1 * 0.61 * feature_f).sin(),
          .targets_bo = (sample_b1 * 0.23 * output_o).cos()};
}

torch::Tensor toy_loss(ToyNet& net, const ToyBatch& batch) {
  const torch::ScalarType type = net.first->weight.scalar_type();
  const torch::Tensor outputs_bo = net.forward(batch.inputs_bf.to(type)).to(torch::kFloat32);
  return torch::mse_loss(outputs_bo, batch.targets_bo);
}

ToyStep run_toy_step(ToyNet& net, parallel::DataParallel& replicas,
                     comm::Communicator& communicator, const ToyOptions& options, int step) {
  const int micro_steps = options.config.grad_accumulation;
  const std::int64_t batch_size = options.samples_per_step / (communicator.size() * micro_steps);
  ToyStep result;
  for (int micro_step = 0; micro_step < micro_steps; ++micro_step) {
    const std::int64_t batch =
        ((step - 1) * micro_steps + micro_step) * communicator.size() + communicator.rank();
    replicas.begin_micro_step(micro_step);
    const torch::Tensor loss = toy_loss(net, make_toy_batch(batch * batch_size, batch_size));
    const bool overflows =
        step == options.overflow_step && communicator.rank() == communicator.size() - 1;
    const torch::Tensor scaled = overflows ? loss * std::numeric_limits<float>::infinity() : loss;
    scaled.backward(replicas.loss_scale());
    result.loss += loss.item<double>() / micro_steps;
  }
  replicas.finish_backward();
  result.statistics = replicas.update(options.lr);
  return result;
}

ToyResult train_toy(comm::Communicator& communicator, const ToyOptions& options) {
  ToyNet net(communicator.rank(), options.hidden);
  parallel::DataParallel replicas(net, communicator, options.config, options.tools);
  ToyResult result;
  for (int step = 1; step <= options.steps; ++step) {
    const ToyStep done = run_toy_step(net, replicas, communicator, options, step);
    result.losses.push_back(mean_over_ranks(communicator, done.loss));
    // NaN is no equal of itself.
    result.norms.push_back(std::isnan(done.statistics.grad_norm) ? -1 : done.statistics.grad_norm);
    result.news += replicas.take_news();
  }
  replicas.check_replicas();
  result.weights = weights_of(replicas);
  return result;
}

ToyResult train_on_threads(int ranks, const ToyOptions& options) {
  std::vector<ToyResult> results(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](ThreadCommunicator& communicator) {
    results[static_cast<std::size_t>(communicator.rank())] = train_toy(communicator, options);
  });
  for (const ToyResult& result : results) {
    EXPECT_EQ(result.weights, results[0].weights);
    if (options.tools.kernels == nullptr) {  // there the norms stay on the device
      EXPECT_EQ(result.norms, results[0].norms);
    }
  }
  return results[0];
}

std::vector<float> weights_of(parallel::DataParallel& replicas) {
  return concatenated(whole_states(replicas), Parts::kMasters);
}

std::vector<float> state_of(parallel::DataParallel& replicas) {
  return concatenated(whole_states(replicas), Parts::kAll);
}

SavedStates saved(parallel::DataParallel& replicas) {
  SavedStates states;
  for (const parallel::ParameterState& state : replicas.states()) {
    states["." + state.name] = torch::empty(state.master.sizes());
    if (!replicas.shards_state()) states["." + state.name].copy_(state.master);
    for (const parallel::Moment& moment : state.moments) {
      states[moment.name + "." + state.name] = torch::empty(moment.tensor.sizes());
      if (!replicas.shards_state()) states[moment.name + "." + state.name].copy_(moment.tensor);
    }
  }
  if (!replicas.shards_state()) return states;
  replicas.gather_states([&](const std::string& kind, const std::string& parameter) {
    return states.at(kind + "." + parameter);
  });
  return states;
}

void restore(parallel::DataParallel& replicas, const SavedStates& states, std::int64_t steps) {
  if (replicas.shards_state()) {
    replicas.load_states([&](const std::string& kind, const std::string& parameter) {
      return states.at(kind + "." + parameter);
    });
  } else {
    for (parallel::ParameterState& state : replicas.states()) {
      state.master.copy_(states.at("." + state.name));
      for (parallel::Moment& moment : state.moments)
        moment.tensor.copy_(states.at(moment.name + "." + state.name));
    }
  }
  replicas.refresh_parameters();
  replicas.set_steps_taken(steps);
}

}  // namespace sidestream::test
