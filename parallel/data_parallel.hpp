// Data-parallel training of one module: flat storage, gradient synchronisation, optimizer.
//
//   DataParallel replicas(module, communicator, config);  // collective: rank 0's parameters to all
//   for each step:
//     for micro_step in 0 .. G-1:
//       replicas.begin_micro_step(micro_step);
//       loss(module).backward();               // hooks start the collectives of full buckets
//     replicas.finish_backward();              // every gradient is now the sum over ranks
//     const auto done = replicas.update(lr);   // 1/(R G), clipping, optimizer: one pass
//
// Parameters come in fp32; those with a gradient are in DataParallelConfig::parameter_dtype from
// then on, the others and buffers as they were. Who freezes or unfreezes one (requires_grad) makes
// a new DataParallel after that: begin_micro_step(0) throws Error otherwise.
//
// Owns the flat buffers and the hooks; the module's parameters become views of the buffers and have
// to stay so: load(), to() and the like come before (begin_micro_step(0) throws Error otherwise; it
// does not see a parameter or submodule that another has replaced); values change in states(),
// followed by refresh_parameters(): what is written into parameters in bf16 or fp16 themselves, the
// next update overwrites from the fp32 master weights. Parameters become contiguous, those in
// channels-last order, too. Buffers such as BatchNorm's running statistics are each rank's own
// after the start (module_buffers.hpp). A module belongs to one DataParallel at a time. Memory of
// gradients is the communicator's, and stays until its end; that of shared weights lives as long as
// a tensor that lies there. Where ranks keep slices of the state, weights move with the buckets
// (before step 2, in set_bucket_order(), and in begin_micro_step(0) when they are cut anew, see
// take_news()): the parameters follow, aliases of them do not. Each step begins without gradients:
// zero_grad() is not needed, and between micro-steps an Error of backward or of finish_backward().
// The module's gradients are undefined after its end.
//
// Several on one communicator are made in the same order on all ranks, and take turns: from the
// last begin_micro_step() to finish_backward() nothing else may use the communicator, another
// DataParallel included, for a backward starts collectives when its gradients happen to be there;
// unless every rank has every gradient by then, in the same order, or with GradientSync::kBucketed,
// which starts them in finish_backward(). Or give each a communicator of its own. Where collectives
// of two meet, host ranks that share a node's memory get a CollectiveError, whose message counts
// the models from 1; others only with CommunicatorConfig::check_collectives.
//
// Ranks with uneven numbers of batches: with UnusedParameters::kAllow a rank that has none left
// takes part without a backward: every begin_micro_step(), finish_backward(), update(). It brings
// zeros, and the average still divides by the number of all ranks.
//
// The weights are update()'s to change, where ranks share or shard their state: with an optimizer
// of one's own in its place (torch::optim), begin_micro_step(0) of the next step throws Error, but
// not on a device for one that writes through Tensor::data(). StateSharing::kOff allows any.
//
// The communicator must outlive it. Destroyed inside a step, it tells the peers; a program that
// knows the cause calls Communicator::announce_failure itself before that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "comm/communicator.hpp"
#include "parallel/config.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/parameter_state.hpp"

namespace sidestream::parallel {

struct StepStatistics {
  // Of the averaged gradient, before clipping; NaN where it stays on a device.
  double grad_norm = 0;
  // How long this step's collectives have blocked the training thread.
  std::int64_t exposed_comm_ns = 0;
};

class DataParallel {
 public:
  // Collective. Throws AgreedError when the ranks' parameters differ in name, shape or dtype, and
  // for a tensor of the module that is not where the communicator works: on its GPU, or the host.
  DataParallel(torch::nn::Module& module, comm::Communicator& communicator,
               const DataParallelConfig& config);
  // With other tools than those of the communicator's device.
  DataParallel(torch::nn::Module& module, comm::Communicator& communicator,
               const DataParallelConfig& config, const DeviceTools& tools);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // As it was given.
  const DataParallelConfig& config() const noexcept;

  // Before the forward of micro-step 0 .. grad_accumulation - 1. The last one communicates; so does
  // the first one of step 2, when the bucket order is agreed, and of steps before which the buckets
  // were measured. Throws Error when calls come out of order, and for micro-step 0 of a step whose
  // gradients are neither finished nor dropped.
  void begin_micro_step(int micro_step);

  // The step begins anew, with micro-step 0: what its micro-steps have gathered is dropped, and
  // steps_taken() stays. On all ranks alike; does not communicate. Throws Error between the last
  // begin_micro_step() and finish_backward(), when sums may be under way.
  void drop_gradients();

  // Where a parameter's gradient may be written in the current micro-step and handed to autograd,
  // so that it need not be copied into its bucket: memory of the parameter's shape, not
  // initialised. Undefined between steps, for other tensors, where the gradient has to be added to
  // what is there or converted, and without gradient_as_bucket_view. The function may outlive this
  // and then returns nothing.
  std::function<torch::Tensor(const torch::Tensor& parameter)> gradient_memory();

  // Called in backward with a parameter whose whole gradient is in that memory: true says that it
  // counts as there, its bucket may leave at once, and autograd must not be handed it. False where
  // the memory was asked for more than once, for a weight that is used as often: the gradients of
  // all uses are autograd's to add. A use that does not ask is an Error of backward. The function
  // may outlive this, too.
  std::function<bool(const torch::Tensor& parameter)> gradient_taking();

  // Called with a parameter before its weights are read, waits until those of the last update are
  // there. Who takes this function promises to call it for every parameter before every use:
  // from then on update() of sharded state leaves weights on their way, so that they travel while
  // the forward computes. The function may outlive this and then does nothing. Throws
  // CollectiveError, PeerError.
  std::function<void(const torch::Tensor& parameter)> weight_arrival();

  // After the last backward. Blocks a host rank until all sums are there; on a device the current
  // stream is put behind them. With sharded state a rank has the sums of its slices only: the
  // module's gradients are of no use to others. Throws Error that names a parameter without
  // gradient (UnusedParameters::kError), CollectiveError, PeerError.
  void finish_backward();

  // What the loss is to be multiplied with before backward: a scalar in fp32 where the parameters
  // are, undefined without DataParallelConfig::loss_scale. Always the same tensor, which update()
  // writes to; loss.backward(loss_scale()) works in both cases. Norms are those of gradients
  // without the scale.
  torch::Tensor loss_scale() const;

  // What a checkpoint keeps of it; waits for a device. A dynamic scale goes on from what is
  // restored.
  optim::LossScaleState loss_scale_state() const;
  void restore_loss_scale(const optim::LossScaleState& state);

  // Of the averaged gradient, before clipping; between finish_backward() and update(). A step whose
  // norm is not finite can be dropped on all ranks alike by going on with begin_micro_step(0)
  // instead of update(); who sets weights then, other than by restoring states() on every rank,
  // calls drop_gradients() first.
  double grad_norm() const;

  // The first parameter, in registration order, whose summed gradient is not finite; empty: none.
  // After grad_norm() of this step, on every rank the same. Waits for a device.
  std::string first_bad_gradient() const;

  // On a device: the step whose norm was not finite, counted as by steps_taken(), since which
  // updates change nothing; 0: there is none. On host ranks grad_norm() says it step by step: 0.
  // Waits for the device.
  std::int64_t first_bad_step() const;

  // For calls that must not come inside of a step: throws Error that names `call`.
  void require_idle(const char* call) const;

  // On a device: doubles, as optim::StepScalars, of the last update; undefined on host ranks.
  // Once first_bad_step is set, updates change nothing any more.
  torch::Tensor device_scalars() const;

  // Average, clip, optimizer, once per step; parameters hold the new weights afterwards. Clips by
  // the norm that finish_backward() has found: gradients are not to be changed in between, nor
  // clipped by the caller, for that norm would be stale (OptimizerConfig::grad_clip is for that).
  // With another reduce_dtype than parameter_dtype, parameters have no grad() after backward at
  // all. Throws Error for a learning rate below 0 or not finite. With a dynamic loss scale,
  // gradients that are not finite change nothing but the scale. On a device it only queues work.
  // Where ranks share or shard their state, it waits for all of them; see weight_arrival().
  StepStatistics update(double learning_rate);

  // The two halves of update(), for a step whose work is captured once and replayed (a CUDA graph):
  // prepare_update() queues what changes from step to step, outside of what is captured and as
  // early as before begin_micro_step(0); update_prepared() is in it.
  void prepare_update(double learning_rate);
  StepStatistics update_prepared();
  // After prepare_update() and a replay: a step was taken that called nothing else here.
  void count_replayed_step();
  // After a failure between begin_micro_step(0) and the end of a captured step, none of whose work
  // has run, or of a forward before its backward, on all ranks alike: no step is under way, and
  // steps_taken() is `steps_taken` again.
  void abandon_step(std::int64_t steps_taken);
  // Changes whenever gradients or sharded weights come to lie elsewhere; what was captured before
  // reads and writes the old places. 0: the order of the buckets is still to be observed.
  std::uint64_t layout() const;

  // Weights that update() has left on their way are there, for who changes them: what a gather
  // brings later would undo it. Blocks a host rank; not collective. Throws CollectiveError,
  // PeerError.
  void await_weights() const;

  // Calls of update(); set when resuming. Bias correction depends on it, and on how many of these
  // updates the loss scale has left out. Setting it ends what first_bad_step() says: the state is
  // another one.
  std::int64_t steps_taken() const;
  void set_steps_taken(std::int64_t steps);

  // In registration order. Writing into master and moments and then calling refresh_parameters()
  // restores a state.
  std::vector<ParameterState> states() const;
  void refresh_parameters();

  // Each rank keeps its slices of master weights and moments, and states() has their shapes only.
  // The two below are for that case; see parameter_state.hpp. Both first wait for weights that are
  // on their way. gather_states is collective. Both throw Error in any other case.
  bool shards_state() const;
  void gather_states(const StatePlace& place);
  void load_states(const StatePlace& source);

  // Parameter names in the order in which buckets are filled: observed after step 1, agreed by all
  // ranks. Setting it before the first step (resume, with set_steps_taken()) skips the observation.
  // Collective. Throws ConfigError when the names are not those of the parameters, AgreedError when
  // ranks give different ones.
  std::vector<std::string> bucket_order() const;
  // The same for a checkpoint; empty: still to be observed, by who goes on from it, too.
  std::vector<std::string> observed_bucket_order() const;
  void set_bucket_order(const std::vector<std::string>& names);

  // One line per bucket for logs: parameters, bytes.
  std::vector<std::string> describe_buckets() const;

  // What has changed about the buckets since the last call, in a sentence for the log, the same on
  // all ranks; empty: nothing. With bucket_mb chosen here, buckets are cut anew after the first
  // steps, and from time to time, by what collectives and backward took.
  std::string take_news();

  // Collective: throws NumericsError naming the first parameter whose bytes differ between ranks,
  // and the ranks. Weights that the ranks share cannot differ, and with sharded state those of the
  // last update were the same.
  void check_replicas();
  // The ranks of the one node keep their weights once, in shared memory.
  bool shares_weights() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with nobody: gradient_memory() looks whether it is there
};

}  // namespace sidestream::parallel
