// What a DataParallel is made of, and a step in order. Included by data_parallel.cpp alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/optim/elements.hpp"
#include "parallel/bucket_readiness.hpp"
#include "parallel/bucket_tuner.hpp"
#include "parallel/data_parallel.hpp"
#include "parallel/gradient_accumulator.hpp"
#include "parallel/gradient_hooks.hpp"
#include "parallel/gradient_space.hpp"
#include "parallel/gradient_synchronizer.hpp"
#include "parallel/initial_space.hpp"
#include "parallel/memory_plan.hpp"
#include "parallel/missing_gradients.hpp"
#include "parallel/parameter_space.hpp"
#include "parallel/replica_agreement.hpp"
#include "parallel/replica_check.hpp"
#include "parallel/step_order.hpp"
#include "parallel/step_update.hpp"
#include "parallel/trained_set.hpp"
#include "parallel/weight_gather.hpp"
#include "parallel/weight_watch.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::parallel {

class DataParallel::Impl {
 public:
  Impl(torch::nn::Module& module, comm::Communicator& communicator,
       const DataParallelConfig& config, const DeviceTools& tools)
      : config_(config),
        order_(config.grad_accumulation),
        communicator_(communicator),
        current_stream_(tools.current_stream),
        parameters_(agreed_space(communicator, module, config, tools)),
        trained_(parameters_.parameters(), module),
        gradients_(communicator, parameters_.parameters(), config.gradient_dtype(),
                   plan_for(reverse_order(parameters_.size()))),
        accumulator_(parameters_, gradients_),
        synchronizer_(make_gradient_synchronizer(config.gradient_sync, communicator, gradients_,
                                                 tools.current_stream)),
        tuner_(make_bucket_tuner(config, communicator)),
        hooks_(parameters_.parameters(), [this](std::size_t i) { on_gradient(i); }) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      index_of_[parameters_.at(i).tensor.unsafeGetTensorImpl()] = i;
    const comm::CollectiveOptions after_copies{.after = tools.current_stream()};
    broadcast_tensors(communicator_, constant_tensors(module), after_copies);
    if (parameters_.is_sharded()) {
      gather_ = std::make_unique<WeightGather>(communicator_, parameters_, gradients_.model(),
                                               current_stream_);
    } else {
      broadcast_parameters(communicator_, parameters_, after_copies);
    }
    update_ = make_step_update(config_, parameters_, gradients_, tools);
    if (parameters_.is_shared() || parameters_.is_sharded())
      watch_ = std::make_unique<WeightWatch>(parameters_);
  }

  ~Impl() {
    if (order_.is_in_micro_step()) {
      communicator_.announce_failure(
          fmt::format("Rank {} left step {} before its gradients were complete.",
                      communicator_.rank(), steps_taken_ + 1));
    }
  }

  void begin_micro_step(int micro_step) {
    order_.require_next(micro_step);
    if (micro_step == 0) {
      parameters_.require_in_place();
      require_unwritten();
      trained_.require_unchanged();
      settle_bucket_order();
      settle_bucket_cut();
      const ranges::ScopedRange range(ranges::Phase::kZeroGrad);
      accumulator_.begin_step();
    }
    readiness_.begin(gradients_.plan());
    hooks_to_come_.clear();
    if (micro_step == config_.grad_accumulation - 1) {
      synchronizer_->begin();
      if (tuner_ && order_settled_) tuner_->backward_begins(gradients_.plan());
    }
    order_.begin(micro_step);
  }

  void wait_later() { waits_later_ = true; }
  void wait_for_weights(const torch::Tensor& parameter) {
    if (!gather_) return;
    const auto found = index_of_.find(parameter.unsafeGetTensorImpl());
    if (found != index_of_.end()) gather_->wait_for(found->second);
  }

  torch::Tensor lend_gradient(const torch::Tensor& parameter) {
    if (!order_.is_in_micro_step() || !config_.gradient_as_bucket_view) return {};
    const auto found = index_of_.find(parameter.unsafeGetTensorImpl());
    return found == index_of_.end() ? torch::Tensor() : accumulator_.lend(found->second);
  }

  bool take_gradient(const torch::Tensor& parameter) {
    const auto found = index_of_.find(parameter.unsafeGetTensorImpl());
    if (found == index_of_.end() || !order_.is_in_micro_step()) return false;
    if (!accumulator_.take_lent(found->second)) return false;
    hooks_to_come_.insert(found->second);
    count_gradient(found->second);
    return true;
  }

  void finish_backward() {
    order_.require(StepPhase::kLastBackward, "finish_backward()",
                   "the backward of the last micro-step");
    if (!order_settled_) observed_order_ = readiness_.order();  // empty: no gradient on this rank
    complete_missing(readiness_.missing());
    synchronizer_->finish([this](std::size_t bucket) { update_->add_bucket(bucket); });
    const auto begin = std::chrono::steady_clock::now();
    update_->complete_norm();
    norm_ns_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    if (tuner_ && order_settled_) tuner_->backward_ended(synchronizer_->spans());
    watch_weights();
    order_.reduced();
  }

  double grad_norm() const {
    order_.require(StepPhase::kReduced, "grad_norm()", "finish_backward()");
    const double norm = update_->grad_norm(average());
    // What a device was told of an update is gone then.
    if (request_.step == steps_taken_ + 1) update_->prepare(request_);
    return norm;
  }

  void prepare_update(double learning_rate) {
    if (!(learning_rate >= 0 && std::isfinite(learning_rate)))
      throw core::Error(fmt::format("A learning rate of {}: expected 0 or more.", learning_rate));
    request_ = {.step = steps_taken_ + 1, .lr = learning_rate, .average = average()};
    update_->prepare(request_);
  }

  StepStatistics update_prepared() {
    order_.require(StepPhase::kReduced, "update()", "finish_backward()");
    const ranges::ScopedRange range(ranges::Phase::kOptimizer);
    ++steps_taken_;
    finish_gather();  // of weights that no forward has used
    std::int64_t blocked_ns = synchronizer_->blocked_ns();
    blocked_ns += parameters_.meet();  // nobody reads the old weights any more
    const double norm = update_->update(request_);
    blocked_ns += parameters_.meet();  // everybody's part is there
    if (gather_) {
      gather_->start();
      if (!waits_later_) gather_->finish();
      blocked_ns += norm_ns_ + gather_->take_blocked_ns();
    }
    order_.end();
    return {.grad_norm = norm, .exposed_comm_ns = blocked_ns};
  }

  void drop_gradients() {
    order_.require_droppable();
    if (watch_ && order_.is_reduced()) watch_->require_unwritten_by_own();
    accumulator_.begin_step();
    order_.end();
  }

  void abandon_step(std::int64_t steps_taken) {
    if (gather_) gather_->abandon();
    synchronizer_->begin();  // forgets collectives that will never run
    accumulator_.begin_step();
    order_.end();
    steps_taken_ = steps_taken;
  }
  std::uint64_t layout() const { return order_settled_ ? layouts_ : 0; }

  StepUpdate& step_update() const { return *update_; }

  const DataParallelConfig& config() const noexcept { return config_; }

  void require_idle(const char* call) const {
    order_.require(StepPhase::kIdle, call, "construction or update()");
  }

  std::int64_t first_bad_step() const {
    const torch::Tensor scalars = update_->scalars();
    if (!scalars.defined()) return 0;
    constexpr auto kPlace = offsetof(optim::StepScalars, first_bad_step) / sizeof(double);
    return static_cast<std::int64_t>(scalars[kPlace].item<double>());
  }

  std::string first_bad_gradient() const {
    const std::vector<double> squares = update_->parameter_squares();
    const auto bad = std::find_if_not(squares.begin(), squares.end(),
                                      [](double square) { return std::isfinite(square); });
    if (bad == squares.end()) return {};
    return parameters_.at(static_cast<std::size_t>(bad - squares.begin())).name;
  }
  void await_weights() const { finish_gather(); }
  std::int64_t steps_taken() const { return steps_taken_; }
  void set_steps_taken(std::int64_t steps) { steps_taken_ = steps; }

  std::vector<ParameterState> states() const {
    finish_update();
    return states_of(parameters_, *update_);
  }
  bool shards_state() const { return parameters_.is_sharded(); }
  void gather_states(const StatePlace& place) {
    finish_update();
    parallel::gather_states(parameters_, *update_, place);
  }
  void load_states(const StatePlace& source) {
    finish_update();
    parallel::load_states(parameters_, *update_, source);
    forget_weights();
  }
  void refresh_parameters() {
    parameters_.refresh_weights();
    forget_weights();
  }

  std::vector<std::string> bucket_order() const {
    std::vector<std::string> names;
    for (const std::size_t i : gradients_.plan().order()) names.push_back(parameters_.at(i).name);
    return names;
  }

  void set_bucket_order(const std::vector<std::string>& names) {
    require_idle("set_bucket_order()");
    require_same_order(communicator_, names);
    adopt(plan_for(indices_of(parameters_.parameters(), names)));
    if (tuner_) tuner_->plan_changed();
  }

  std::vector<std::string> describe_buckets() const {
    return describe(gradients_.plan(), parameters_.names(), gradients_.dtype());
  }

  std::string take_news() { return std::exchange(news_, {}); }

  void check_replicas() {
    finish_update();
    parallel::check_replicas(communicator_, parameters_);
  }
  bool shares_weights() const { return parameters_.is_shared(); }

 private:
  double average() const {
    return 1.0 / (static_cast<double>(communicator_.size()) * config_.grad_accumulation);
  }

  BucketPlan plan_for(const std::vector<std::size_t>& order) const {
    return plan_of(config_, parameters_.elements(), order, communicator_.size(),
                   parameters_.is_sharded() ? Slicing::kByRank : Slicing::kNone);
  }

  void on_gradient(std::size_t parameter) {
    if (!order_.is_in_micro_step()) {
      throw core::Error("A backward began outside of a micro-step: call begin_micro_step() first.");
    }
    // Autograd calls the hook without a gradient, too, where an operator's was taken over.
    if (hooks_to_come_.erase(parameter) > 0) return accumulator_.require_single_use(parameter);
    if (readiness_.has(parameter)) {
      throw core::Error(fmt::format(
          "Parameter '{}' got a second gradient in micro-step {}: expected one backward in each "
          "micro-step. Add the losses and call backward once; or raise grad_accumulation and "
          "multiply "
          "each loss by it, for the gradients of micro-steps are averaged.",
          parameters_.at(parameter).name, order_.micro_step()));
    }
    accumulator_.take(parameter, order_.is_in_last() ? MicroStep::kLast : MicroStep::kMoreFollow);
    count_gradient(parameter);
  }

  void count_gradient(std::size_t parameter) {
    const bool full = readiness_.add(parameter) == BucketReadiness::Bucket::kFull;
    if (!order_.is_in_last()) return;
    if (tuner_ && order_settled_) tuner_->gradient_ready(parameter);
    if (full) synchronizer_->bucket_ready(readiness_.bucket_of(parameter));
  }

  void complete_missing(const std::vector<std::size_t>& missing) {
    if (!missing.empty() && config_.unused_parameters == UnusedParameters::kError) {
      const std::string message = missing_gradients_text(parameters_.parameters(), missing);
      communicator_.announce_failure(message);
      throw core::Error(message);
    }
    for (const std::size_t parameter : missing) {
      accumulator_.fill_if_missing(parameter);
      count_gradient(parameter);
    }
  }

  // Once, before step 2: buckets in the order in which gradients became ready in step 1. What never
  // came goes last.
  void settle_bucket_order() {
    if (order_settled_ || !observed_order_) return;
    std::vector<std::size_t> order = *observed_order_;
    for (const std::size_t i : reverse_order(parameters_.size())) {
      if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
    }
    adopt(plan_for(agree_on_order(communicator_, order)));
  }

  // Between steps, when the tuner has measured enough.
  void settle_bucket_cut() {
    if (!tuner_ || !order_settled_) return;
    const BucketPlan& plan = gradients_.plan();
    auto proposal = tuner_->propose(plan, gradients_.dtype(), state_bytes_to_move());
    if (!proposal) return;
    adopt(cut_into_buckets(plan, parameters_.elements(), gradients_.dtype(), proposal->cut));
    news_ = std::move(proposal->reason);
  }

  void finish_gather() const {
    if (gather_) gather_->finish();
  }

  void watch_weights() {
    if (!watch_) return;
    if (parameters_.device().is_cpu()) finish_gather();  // of weights that no forward has used
    watch_->begin();
  }
  // A state was restored in place of an update.
  void forget_weights() {
    if (watch_) watch_->forget();
  }
  void require_unwritten() const {
    if (watch_ && order_.is_reduced()) watch_->require_unwritten();
  }

  // For who reads or writes weights and state.
  void finish_update() const {
    finish_gather();
    if (update_) update_->finish_state();
  }

  // Of all ranks together: what move_state() gathers.
  std::size_t state_bytes_to_move() {
    if (!parameters_.is_sharded()) return 0;
    std::size_t own = parameters_.has_master() ? parameters_.master_state().flat.nbytes() : 0;
    update_->each_state([&](const FlatState& state) { own += state.flat.nbytes(); });
    return own * static_cast<std::size_t>(gradients_.plan().slices);
  }

  // Weights and state come to lie as the plan has them.
  void move_state(const BucketPlan& plan) {
    finish_update();
    parameters_.move(
        {communicator_, plan, parameters_.elements(), current_stream_, parameters_.device()},
        [this](const VisitState& visit) { update_->each_state(visit); }, gradients_.scratch());
  }

  void adopt(BucketPlan plan) {
    if (parameters_.is_sharded()) move_state(plan);
    gradients_.adopt(std::move(plan));
    update_->layout_changed();
    order_settled_ = true;
    ++layouts_;
  }

  DataParallelConfig config_;
  StepOrder order_;
  comm::Communicator& communicator_;
  CurrentStream current_stream_;
  ParameterSpace parameters_;
  TrainedSet trained_;
  GradientSpace gradients_;
  GradientAccumulator accumulator_;
  BucketReadiness readiness_;
  std::unique_ptr<GradientSynchronizer> synchronizer_;
  std::unique_ptr<StepUpdate> update_;
  std::unique_ptr<WeightGather> gather_;  // null: every rank updates all weights, or shares them
  std::unique_ptr<WeightWatch> watch_;    // null: each rank has all weights and sums to itself
  bool waits_later_ = false;              // for what is gathered: until its weights are used
  std::int64_t norm_ns_ = 0;  // that the norm of this step took, its collective included
  std::int64_t steps_taken_ = 0;
  UpdateRequest request_;  // of the last prepare_update()
  bool order_settled_ = false;
  std::uint64_t layouts_ = 0;                               // that were adopted
  std::optional<std::vector<std::size_t>> observed_order_;  // of a first step, once it is over
  std::unique_ptr<BucketTuner> tuner_;                      // null: the cut stays
  std::string news_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_of_;
  std::unordered_set<std::size_t> hooks_to_come_;  // of gradients that were taken over
  GradientHooks hooks_;                            // last: removed first
};

}  // namespace sidestream::parallel
