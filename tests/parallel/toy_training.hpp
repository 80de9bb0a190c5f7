// A small network and its training loop on any communicator: what the tests compare.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include "comm/communicator.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::test {

// Two layers with a norm between them and a branch that a loss may leave out. Sizes that need
// padding.
class ToyNet : public torch::nn::Module {
 public:
  // Every rank starts with other weights: rank 0's must win.
  explicit ToyNet(int rank, std::int64_t hidden = 19);

  torch::Tensor forward(const torch::Tensor& inputs_bf);

  torch::nn::Linear first;
  torch::nn::LayerNorm norm;
  torch::nn::Linear second;
  torch::nn::Linear branch;
  bool use_branch = true;
};

struct ToyBatch {
  torch::Tensor inputs_bf;
  torch::Tensor targets_bo;
};
ToyBatch make_toy_batch(std::int64_t first_sample, std::int64_t count);

inline constexpr double kSmallBuckets = 1e-4;  // MiB, a hundred bytes: several even for the toy

struct ToyOptions {
  int steps = 20;
  int samples_per_step = 24;  // over ranks and micro-steps
  double lr = 1e-2;
  std::int64_t hidden = 19;  // units between the layers; thousands: several blocks of a sum
  parallel::DataParallelConfig config = {};
  parallel::DeviceTools tools = {};  // empty: host tensors
  int overflow_step = 0;             // in which the last rank's gradients are infinite; 0: none
};

struct ToyResult {
  std::vector<double> losses;  // mean over ranks and micro-steps
  std::vector<double> norms;   // -1: not a number, or on a device
  std::vector<float> weights;  // master weights at the end
  std::string news;            // of the buckets
};

torch::Tensor toy_loss(ToyNet& net, const ToyBatch& batch);

// One step on this rank's samples; the mean loss over its micro-steps, and what update() returned.
struct ToyStep {
  double loss = 0;
  parallel::StepStatistics statistics;
};
ToyStep run_toy_step(ToyNet& net, parallel::DataParallel& replicas,
                     comm::Communicator& communicator, const ToyOptions& options, int step);

// The same on every rank.
ToyResult train_toy(comm::Communicator& communicator, const ToyOptions& options);

// The same on ranks that are threads: the result of the first, which has to be that of all.
ToyResult train_on_threads(int ranks, const ToyOptions& options);

// Master weights of all parameters; collective where state is sharded.
std::vector<float> weights_of(parallel::DataParallel& replicas);
// The same, and all moments behind them.
std::vector<float> state_of(parallel::DataParallel& replicas);

// What a checkpoint would hold, of either kind of state: by kind and parameter, in fp32. saved() is
// collective where state is sharded; restore() takes it into either kind.
using SavedStates = std::map<std::string, torch::Tensor>;
SavedStates saved(parallel::DataParallel& replicas);
void restore(parallel::DataParallel& replicas, const SavedStates& states, std::int64_t steps);

}  // namespace sidestream::test
